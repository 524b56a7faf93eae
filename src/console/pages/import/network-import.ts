import { ApiRefusalError } from '../../../client/client-errors.ts'
import { MANAGEMENT_API_PATH } from '../../../client/cluster-client.ts'
import { PREVIEW_CHANGES_MAX } from '../../../cli/access/preview-response.ts'
import type { RecordApi } from '../../../cli/client/record-api.ts'
import { toApiRefusal } from '../../../cli/client/api-refusal.ts'
import { NetworkStepRunner } from '../../../cli/network/step-runner.ts'
import { type FileFault, parseNetworkFile } from '../../../cli/network/network-file.ts'
import { type LiveNetwork, readNetwork } from '../../../cli/network/live-network.ts'
import { planNetworkSteps, type NetworkStep } from '../../../cli/network/plan.ts'
import { toPreviewChanges } from '../../../cli/network/preview-steps.ts'
import { allSections } from '../../../cli/network/sections.ts'
import { consoleApiClient } from '../../app/console-state.ts'

/** The plan of `flotilla apply`, made and carried out by the browser with the caller's session. */
export interface NetworkImport {
  readonly faults: readonly FileFault[]
  readonly steps: readonly NetworkStep[]
  /** Changes for the preview of access; null if there are too many for one preview. */
  readonly previewed: ReturnType<typeof toPreviewChanges>['changes'] | null
  readonly live: LiveNetwork | null
}

/** Maximum size of a file; larger files require `flotilla apply`. */
export const IMPORT_BYTES_MAX = 4 * 1024 * 1024

/** Compares a file with the network; changes nothing. */
export async function planImport(text: string, signal: AbortSignal): Promise<NetworkImport> {
  const file = parseNetworkFile(text, () => () => undefined)
  if (file.faults.length > 0) return refused(file.faults)
  const named = new Set(file.objects.map(({ section }) => section.name))
  // Configs of identities are read with one request for each identity, and no other record refers
  // to them.
  const sections = allSections().filter(({ kind, name }) => {
    return kind.id !== 'serviceConfig' || named.has(name)
  })
  const live = await readNetwork(recordApi(signal), sections)
  const { steps, faults } = planNetworkSteps(file.objects, live, false)
  if (faults.length > 0) return refused(faults)
  const { changes } = toPreviewChanges(steps, live)
  return { faults, steps, live, previewed: changes.length > PREVIEW_CHANGES_MAX ? null : changes }
}

function refused(faults: readonly FileFault[]): NetworkImport {
  return { faults, steps: [], previewed: [], live: null }
}

/** Text for one step: the sign of its kind, its object, and the names of changed fields. */
export function stepText(step: NetworkStep): string {
  switch (step.verb) {
    case 'delete':
      return `− ${step.live.label}`
    case 'create':
      return `+ ${step.wanted.label}`
    case 'adopt':
      return `~ ${step.wanted.label}`
    case 'update':
      return `~ ${step.wanted.label}: ${step.changes.map(({ field }) => field).join(', ')}`
  }
}

/**
 * Carries out the steps in order. A repetition with the same file continues after the last step
 * that succeeded.
 * @param onDone called with the number of steps that are done.
 */
export async function runImport(
  { steps, live }: NetworkImport,
  onDone: (done: number) => void,
): Promise<void> {
  if (live === null) return
  const runner = new NetworkStepRunner(recordApi(), live)
  for (const [at, step] of steps.entries()) {
    await runner.run(step)
    onDone(at + 1)
  }
}

function recordApi(signal?: AbortSignal): RecordApi {
  return {
    ask: async ({ method, path, body }) => {
      try {
        const answer = await consoleApiClient.ask({
          method,
          path: MANAGEMENT_API_PATH + path,
          ...(body === undefined ? {} : { body }),
          ...(signal === undefined ? {} : { signal }),
        })
        const { data } = answer.body as { readonly data: never }
        return { data, header: answer.header }
      } catch (error) {
        throw error instanceof ApiRefusalError ? toApiRefusal(error) : error
      }
    },
  }
}
