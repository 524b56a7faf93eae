import type { Command } from 'commander'

import { nearestWord } from '../config/engine/nearest-word.ts'
import { CommandFailure, EXIT_USAGE } from '../controller/command-failure.ts'

/** Names that other programs use, each with the command of this program that is most similar. */
const synonyms: Readonly<Record<string, string>> = {
  add: 'create',
  agent: 'controller run',
  backup: 'cluster snapshot save',
  describe: 'explain',
  edit: 'update',
  health: 'cluster status',
  leader: 'cluster status',
  leave: 'cluster remove',
  logs: 'log level',
  ls: 'list',
  member: 'cluster list',
  members: 'cluster list',
  rm: 'delete',
  server: 'controller run',
  set: 'update',
  show: 'get',
  start: 'controller run',
  watch: 'events',
  whoami: 'context list',
}

/** Minimum length of a word that may be an abbreviation of a command's name. */
const BEGINNING_MIN = 3

/** The full name of a command, such as `flotilla cluster status`. */
export function commandFullName(command: Command): string {
  const names = [command.name()]
  for (let at = command.parent; at !== null; at = at.parent) names.unshift(at.name())
  return names.join(' ')
}

/** The error for an unknown command in a group; suggests similar commands, if there are any. */
export function unknownCommandFailure(group: Command, word: string): CommandFailure {
  const meant = group.parent === null ? (synonyms[word.toLowerCase()] ?? null) : null
  const found = meant === null ? commandsLike(group, word) : [`${group.name()} ${meant}`]
  const hint =
    found.length === 0
      ? `${commandFullName(group)} --help lists all`
      : `did you mean ${found.map((name) => `'${name}'`).join(' or ')}?`
  return new CommandFailure(EXIT_USAGE, `unknown command '${word}'; ${hint}`)
}

/**
 * Suggestions: the commands with this name in any group, if there are at most three; otherwise the
 * only command of the group whose name begins with the word, unless the word is very short;
 * otherwise the most similar name, first in the group, then in any group.
 */
function commandsLike(group: Command, word: string): string[] {
  const inGroup = shownIn(group)
  const all = deepIn(rootOf(group))
  const isSame = (one: Command): boolean => one.name() === word.toLowerCase()
  const same = all.filter(isSame)
  if (same.length > 0 && same.length <= 3) return same.map(commandFullName)
  const begun = inGroup.filter((one) => one.name().startsWith(word.toLowerCase()))
  if (word.length >= BEGINNING_MIN && begun.length === 1) return begun.map(commandFullName)
  const near = nearestIn(inGroup, word) ?? nearestIn(all, word)
  return near === null ? [] : [commandFullName(near)]
}

function nearestIn(commands: readonly Command[], word: string): Command | null {
  const name = nearestWord(
    word,
    commands.map((one) => one.name()),
  )
  return commands.find((one) => one.name() === name) ?? null
}

function shownIn(group: Command): readonly Command[] {
  return group.createHelp().visibleCommands(group)
}

function deepIn(group: Command): Command[] {
  return shownIn(group).flatMap((one) => [one, ...deepIn(one)])
}

function rootOf(command: Command): Command {
  return command.parent === null ? command : rootOf(command.parent)
}
