import {
  CommandFailure,
  EXIT_DIFFERENCES_FOUND,
  EXIT_FAILED,
  EXIT_USAGE,
} from '../../controller/command-failure.ts'
import type { ApiClient } from '../client/api-client.ts'
import { openContextClient, type ContextOptions } from '../client/context-client.ts'
import { createdRecordShape } from '../records/rows.ts'
import { printJson, printLine } from '../terminal/output.ts'
import { promptLine, isInteractive } from '../terminal/prompt.ts'
import {
  requestPreview,
  PREVIEW_CHANGES_MAX,
  type PreviewResponse,
  accessPreviewText,
} from '../access/preview-response.ts'
import { NetworkStepRunner } from './step-runner.ts'
import { type NetworkFile, parseNetworkFile } from './network-file.ts'
import { readNetworkText, requireNoFaults, createSchemaChecks } from './file-checks.ts'
import { type LiveNetwork, readNetwork } from './live-network.ts'
import { planNetworkSteps, type NetworkStep, type FieldChange } from './plan.ts'
import { toPreviewChanges } from './preview-steps.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'

export interface ApplyOptions extends ContextOptions {
  readonly file: string
  readonly dryRun?: boolean
  readonly access?: boolean
  readonly prune?: boolean
  readonly yes?: boolean
}

const PAIRS_SHOWN = 100

/** Changes the network to match a file. */
export async function applyNetworkFile(options: ApplyOptions): Promise<void> {
  const file = parseNetworkFile(readNetworkText(options.file), createSchemaChecks())
  await applyNetwork(options.file, file, options)
}

/**
 * @param path path of the file, for messages about its faults.
 * @param over completes the objects of the file with values from the network; if absent, the
 * objects are used unchanged.
 * @throws {CommandFailure} exit 2 for faults of the file, with nothing changed; exit 1 when a step
 * fails, after the steps before it have changed the network.
 */
export async function applyNetwork(
  path: string,
  file: NetworkFile,
  options: Omit<ApplyOptions, 'file'>,
  over: (objects: NetworkFile['objects'], live: LiveNetwork) => NetworkFile['objects'] = (all) =>
    all,
): Promise<void> {
  if (options.access === true && options.dryRun !== true) {
    throw new CommandFailure(EXIT_USAGE, '--access needs --dry-run')
  }
  requireNoFaults(path, file.faults)
  const client = openContextClient(options)
  const live = await readNetwork(client)
  const plan = planNetworkSteps(over(file.objects, live), live, options.prune === true)
  requireNoFaults(path, plan.faults)
  const steps = options.prune === true ? await withoutOwn(client, plan.steps) : plan.steps
  const isDry = options.dryRun === true
  if (options.json !== true) printPlan(steps, isDry)
  if (!isDry && steps.length > 0) {
    await mustBeMeant(steps, options)
    await carryOut(client, live, steps, options)
  }
  const access = isDry && options.access === true ? await accessOf(client, steps, live) : null
  if (isDry && steps.length > 0) process.exitCode = EXIT_DIFFERENCES_FOUND
  if (options.json === true) printSteps(steps, !isDry, access?.previewed)
  else if (access !== null) printLine(access.text)
}

/**
 * Previews which access the steps would grant and revoke. The preview omits steps that the preview
 * API does not support.
 */
async function accessOf(
  client: ApiClient,
  steps: readonly NetworkStep[],
  live: LiveNetwork,
): Promise<{ readonly text: string; readonly previewed?: PreviewResponse }> {
  const { changes, leftOut } = toPreviewChanges(steps, live)
  if (changes.length === 0) return { text: 'access: no change' }
  if (changes.length > PREVIEW_CHANGES_MAX) {
    throw new CommandFailure(
      EXIT_FAILED,
      `access of ${changes.length} changes cannot be previewed at once (at most ${PREVIEW_CHANGES_MAX}); apply the file in parts`,
    )
  }
  const previewed = await requestPreview(client, changes, PAIRS_SHOWN)
  const rest =
    leftOut === 0 ? '' : `\n${leftOut} of ${steps.length} changes are no part of the preview`
  return { text: `${accessPreviewText(previewed)}${rest}`, previewed }
}

function printPlan(steps: readonly NetworkStep[], isDry: boolean): void {
  if (steps.length === 0) {
    printLine('no change needed')
    return
  }
  printLine(differenceText(steps))
  if (isDry) printLine(`dry run, nothing was changed: ${countText(steps)}`)
}

/**
 * Removes the step that would delete the identity that runs the command, so that pruning never
 * deletes that identity.
 */
async function withoutOwn(
  client: ApiClient,
  steps: readonly NetworkStep[],
): Promise<readonly NetworkStep[]> {
  const { data } = await client.ask(
    { method: 'GET', path: '/current-identity' },
    createdRecordShape,
  )
  const { id } = data
  return steps.filter(
    (step) =>
      step.verb !== 'delete' || step.live.section.kind.id !== 'identity' || step.live.id !== id,
  )
}

async function mustBeMeant(
  steps: readonly NetworkStep[],
  { yes }: Omit<ApplyOptions, 'file'>,
): Promise<void> {
  const count = steps.filter(({ verb }) => verb === 'delete').length
  if (count === 0 || yes === true) return
  const what = `${count} ${count === 1 ? 'object' : 'objects'} of the network`
  if (!isInteractive()) {
    throw new CommandFailure(
      EXIT_USAGE,
      `no terminal to confirm the deletion of ${what}; add --yes. Nothing changed`,
    )
  }
  if ((await promptLine(`Delete ${what}? (yes/no) `)) === 'yes') return
  throw new CommandFailure(EXIT_FAILED, 'nothing was changed')
}

async function carryOut(
  client: ApiClient,
  live: LiveNetwork,
  steps: readonly NetworkStep[],
  { json }: Omit<ApplyOptions, 'file'>,
): Promise<void> {
  const runner = new NetworkStepRunner(client, live)
  for (const [at, step] of steps.entries()) {
    try {
      await runner.run(step)
    } catch (error) {
      if (!(error instanceof CommandFailure)) throw error
      const sentence = `${error.message}; ${at} of ${steps.length} steps done, rerun the same command to continue`
      if (json === true) printJson({ isDone: false, done: at, error: error.message })
      throw new CommandFailure(EXIT_FAILED, sentence, error)
    }
    if (json !== true) printDone(step)
  }
  if (json !== true) printLine(`done: ${countText(steps)}`)
}

const VALUE_CHARACTERS_MAX = 100

const signs = { create: '+', adopt: '~', update: '~', delete: '-' } as const
const done = { create: 'created', adopt: 'updated', update: 'updated', delete: 'deleted' } as const

/** The planned changes as text: one line for each step, and the changed fields below it. */
function differenceText(steps: readonly NetworkStep[]): string {
  return steps.map(stepText).join('\n')
}

function stepText(step: NetworkStep): string {
  const line = `${signs[step.verb]} ${labelOf(step)}`
  if (step.verb === 'adopt') return `${line} (created with its edge router)`
  if (step.verb !== 'update') return line
  return [line, ...step.changes.map((change) => `    ${changeText(change)}`)].join('\n')
}

function changeText({ field, from, to }: FieldChange): string {
  return printableLine(`${field}: ${valueText(from)} -> ${valueText(to)}`)
}

function valueText(value: Json): string {
  if (value === null) return 'unset'
  const text = JSON.stringify(value)
  return text.length <= VALUE_CHARACTERS_MAX ? text : `${text.slice(0, VALUE_CHARACTERS_MAX - 1)}…`
}

function labelOf(step: NetworkStep): string {
  return printableLine(step.verb === 'delete' ? step.live.label : step.wanted.label)
}

/** Counts, such as `2 created, 1 updated, 0 deleted`. */
function countText(steps: readonly NetworkStep[]): string {
  const count = (word: string): number => steps.filter(({ verb }) => done[verb] === word).length
  return ['created', 'updated', 'deleted'].map((word) => `${count(word)} ${word}`).join(', ')
}

function printDone(step: NetworkStep): void {
  printLine(`${done[step.verb]} ${labelOf(step)}`)
}

/** @param isDone false for a dry run, which executes no step. */
function printSteps(steps: readonly NetworkStep[], isDone: boolean, access?: unknown): void {
  printJson({
    isDone,
    ...(access === undefined ? {} : { access }),
    steps: steps.map((step) => ({
      verb: step.verb === 'adopt' ? 'update' : step.verb,
      object: labelOf(step),
      ...(step.verb === 'update' ? { changes: step.changes } : {}),
    })),
  })
}
