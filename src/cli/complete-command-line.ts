import type { Command, Option } from 'commander'

import { recordNamesForCompletion } from './records/read.ts'
import { allKinds, type RecordKind, findKind } from './records/kinds.ts'
import { openContextClient } from './client/context-client.ts'
import { readContexts } from './client/context-file.ts'

const NAMES_MAX = 100
const WAIT_MS = 2000
const recordVerbs = new Set(['get', 'list', 'create', 'update', 'delete', 'explain'])
const namedVerbs = new Set(['get', 'update', 'delete'])

/**
 * Completions for the last word, which may be empty. Never throws, because a shell would not show
 * the error.
 */
export async function completeCommandLine(
  program: Command,
  words: readonly string[],
): Promise<string[]> {
  const typed = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  try {
    const candidates = await candidatesFor(program, before, typed)
    return candidates.filter((one) => one.startsWith(typed)).sort()
  } catch {
    return []
  }
}

async function candidatesFor(
  program: Command,
  before: readonly string[],
  typed: string,
): Promise<string[]> {
  const { command, rest } = descend(program, before)
  const asking = optionBefore(command, before.at(-1))
  if (asking?.long === '--context') return Object.keys(readContexts().contexts)
  if (asking !== undefined) return [...(asking.argChoices ?? [])]
  if (typed.startsWith('-')) return command.options.flatMap(({ long }) => long ?? [])
  if (command.commands.length > 0) return shownVerbs(command)
  const parent = command.parent?.name()
  if (parent === 'context' && rest.length === 0) return Object.keys(readContexts().contexts)
  if (command.name() === 'help') return helpWords(command, rest)
  const [argument] = command.registeredArguments.slice(rest.length)
  if (argument?.argChoices !== undefined) return [...argument.argChoices]
  if (parent !== program.name() || !recordVerbs.has(command.name())) return []
  return await recordWords(command.name(), rest)
}

/** The option whose value is completed. */
function optionBefore(command: Command, word: string | undefined): Option | undefined {
  return command.options.find(
    ({ long, short, flags }) =>
      flags.includes('<') && word !== undefined && [long, short].includes(word),
  )
}

function shownVerbs(command: Command): string[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .map((one) => one.name())
}

function helpWords(help: Command, rest: readonly string[]): string[] {
  const named = help.parent === null ? null : descend(help.parent, rest).command
  return named === null ? [] : shownVerbs(named)
}

async function recordWords(verb: string, rest: readonly string[]): Promise<string[]> {
  const [word] = rest
  if (word === undefined) return allKinds().flatMap(({ name, plural }) => [name, plural])
  const kind = findKind(word)
  if (namedVerbs.has(verb) && (verb === 'delete' || rest.length === 1)) return await namesOf(kind)
  const isWritten =
    (verb === 'create' && rest.length >= 1) || (verb === 'update' && rest.length > 1)
  return isWritten ? fieldWords(kind, verb) : []
}

function fieldWords({ fields }: RecordKind, verb: string): string[] {
  return fields
    .filter(({ settable }) => settable === 'always' || (verb === 'create' && settable === 'create'))
    .map(({ name, alias, isSecret }) => `${alias ?? name}${isSecret ? '@' : '='}`)
}

/**
 * Record names for completion, with a short time limit: shell completion must be fast even if the
 * cluster does not respond.
 */
async function namesOf(kind: RecordKind): Promise<string[]> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<string[]>((resolve) => {
    timer = setTimeout(() => resolve([]), WAIT_MS)
  })
  try {
    return await Promise.race([
      recordNamesForCompletion(kind, openContextClient({}), NAMES_MAX),
      late,
    ])
  } finally {
    clearTimeout(timer)
  }
}

/** The command that the words select, and the arguments that follow it. */
function descend(
  program: Command,
  words: readonly string[],
): { readonly command: Command; readonly rest: readonly string[] } {
  let command = program
  const rest: string[] = []
  for (const word of words) {
    const inner =
      rest.length === 0 ? command.commands.find((one) => one.name() === word) : undefined
    if (inner !== undefined) command = inner
    else if (!word.startsWith('-')) rest.push(word)
  }
  return { command, rest }
}
