import type { NamedSchema } from '../../entities/operations.ts'
import { closedObjectSchema, arraySchema } from '../../entities/response-schemas.ts'
import { objectSchema } from '../schemas/typed-schema.ts'

const time = { type: ['string', 'null'], format: 'date-time' } as const

export const integrityResultSchema: NamedSchema = {
  name: 'dataIntegrityCheckDetails',
  schema: closedObjectSchema({
    startTime: { ...time, description: 'null before the first run' },
    endTime: { ...time, description: 'null before the first run and during a run' },
    inProgress: { type: 'boolean' },
    fixingErrors: { type: 'boolean' },
    error: { type: 'string', description: 'why the run failed' },
    tooManyErrors: { type: 'boolean', description: 'true: not all errors are in results' },
    results: arraySchema(
      closedObjectSchema({ description: { type: 'string' }, fixed: { type: 'boolean' } }),
    ),
  }),
}

export const snapshotRequestSchema = objectSchema('databaseSnapshotCreate', {
  path: {
    type: ['string', 'null'],
    maxLength: 1024,
    description:
      'new file in the snapshot folder; __DB_DIR__, __DB_FILE__, __DATE__, __TIME__ and __RAFT_INDEX__ are replaced',
  },
})

export const snapshotDetailSchema: NamedSchema = {
  name: 'databaseSnapshotCreateResult',
  schema: closedObjectSchema({ path: { type: 'string', description: 'on this controller' } }),
}
