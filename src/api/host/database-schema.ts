import type { NamedSchema } from '../../entities/operations.ts'
import { closedObject, arraySchema } from '../../entities/shapes.ts'
import { objectSchema } from '../schemas/typed-schema.ts'

const time = { type: ['string', 'null'], format: 'date-time' } as const

export const integrityResult: NamedSchema = {
  name: 'dataIntegrityCheckDetails',
  schema: closedObject({
    startTime: { ...time, description: 'null before the first run' },
    endTime: { ...time, description: 'null before the first run and during a run' },
    inProgress: { type: 'boolean' },
    fixingErrors: { type: 'boolean' },
    error: { type: 'string', description: 'why the run failed' },
    tooManyErrors: { type: 'boolean', description: 'more errors than listed in results' },
    results: arraySchema(
      closedObject({ description: { type: 'string' }, fixed: { type: 'boolean' } }),
    ),
  }),
}

export const snapshotRequest = objectSchema('databaseSnapshotCreate', {
  path: {
    type: ['string', 'null'],
    maxLength: 1024,
    description:
      'new file in the snapshot folder; __DB_DIR__, __DB_FILE__, __DATE__, __TIME__ and __RAFT_INDEX__ are replaced',
  },
})

export const snapshotDetail: NamedSchema = {
  name: 'databaseSnapshotCreateResult',
  schema: closedObject({ path: { type: 'string', description: 'on this controller' } }),
}

const string = { type: 'string' } as const
const strings = { type: 'array', items: string } as const

export const auditDetail: NamedSchema = {
  name: 'auditDetail',
  schema: closedObject({
    index: { type: 'integer', description: 'of the log' },
    at: { type: 'string', format: 'date-time', description: 'log time' },
    actor: closedObject({ id: string, name: { ...string, description: 'its name at that time' } }),
    session: string,
    address: string,
    action: string,
    entity: string,
    entityId: string,
    fields: { ...strings, description: 'names of the fields that an update changed' },
    also: { ...strings, description: 'other records written by the same entry' },
    outcome: {
      ...string,
      description: 'done, the code of the refusal, or requested before it is carried out',
    },
    reason: { ...string, description: 'reason; empty if none was given' },
  }),
}
