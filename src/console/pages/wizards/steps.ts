import { writeRecord, type RecordWriteRequest } from '../records/record-data.ts'

/**
 * A record that a wizard creates. Later records refer to it by the id that the server returned.
 */
export interface WizardStep {
  readonly title: string
  /** @param made ids of the records that the wizard created before, in order. */
  readonly call: (made: readonly string[]) => RecordWriteRequest
}

/** A record that a wizard has already created. */
export interface CreatedRecord {
  readonly title: string
  readonly name: string
  /** API path of the record's collection. */
  readonly path: string
  readonly id: string
}

/** A wizard failed at one step. Contains the records that it created before. */
export class WizardFailure extends Error {
  readonly made: readonly CreatedRecord[]

  constructor(made: readonly CreatedRecord[], cause: unknown) {
    super('a step of the wizard failed', { cause })
    this.made = made
  }
}

/**
 * Creates the records one after the other.
 * @throws {WizardFailure}
 */
export async function runWizardSteps(
  steps: readonly WizardStep[],
  onMade: (made: readonly CreatedRecord[]) => void,
): Promise<readonly CreatedRecord[]> {
  const made: CreatedRecord[] = []
  for (const { title, call } of steps) {
    const request = call(made.map(({ id }) => id))
    try {
      const id = await writeRecord(request)
      const name = String(request.body?.['name'] ?? '')
      made.push({ title, name, path: request.path, id: id ?? '' })
    } catch (error) {
      throw new WizardFailure(made, error)
    }
    onMade([...made])
  }
  return made
}

/** Deletes the records that a wizard created, the last one first. */
export async function undoWizardSteps(made: readonly CreatedRecord[]): Promise<void> {
  for (const { path, id } of made.toReversed()) {
    await writeRecord({ method: 'DELETE', path: `${path}/${encodeURIComponent(id)}` })
  }
}
