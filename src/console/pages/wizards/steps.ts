import { writeRecord, type Write } from '../records/record-data.ts'

/** A record that a wizard makes; later ones name it by the id that it got. */
export interface Step {
  readonly title: string
  /** @param made ids of the records before it, in their order. */
  readonly call: (made: readonly string[]) => Write
}

/** A record that a wizard has created. */
export interface CreatedRecord {
  readonly title: string
  readonly path: string
  readonly id: string
}

/** A wizard that failed at a step, with the records that it had created before. */
export class WizardFailure extends Error {
  readonly made: readonly CreatedRecord[]

  constructor(made: readonly CreatedRecord[], cause: unknown) {
    super('a step of the wizard failed', { cause })
    this.made = made
  }
}

/**
 * Makes the records one after the other.
 * @throws {WizardFailure}
 */
export async function runSteps(
  steps: readonly Step[],
  onMade: (made: readonly CreatedRecord[]) => void,
): Promise<readonly CreatedRecord[]> {
  const made: CreatedRecord[] = []
  for (const { title, call } of steps) {
    const request = call(made.map(({ id }) => id))
    try {
      const id = await writeRecord(request)
      made.push({ title, path: request.path, id: id ?? '' })
    } catch (error) {
      throw new WizardFailure(made, error)
    }
    onMade([...made])
  }
  return made
}

/** Deletes what a wizard made, the last first. */
export async function undoSteps(made: readonly CreatedRecord[]): Promise<void> {
  for (const { path, id } of made.toReversed()) {
    await writeRecord({ method: 'DELETE', path: `${path}/${encodeURIComponent(id)}` })
  }
}
