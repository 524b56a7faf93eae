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
