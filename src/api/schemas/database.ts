import type { NamedSchema } from '../../entities/operations.ts'

const time = { type: ['string', 'null'], format: 'date-time' } as const

export const integrityResult: NamedSchema = {
  name: 'dataIntegrityCheckDetails',
  schema: {
    type: 'object',
    properties: {
      startTime: { ...time, description: 'null before the first run' },
      endTime: { ...time, description: 'null before the first run and while one goes on' },
      inProgress: { type: 'boolean' },
      fixingErrors: { type: 'boolean' },
      error: { type: 'string', description: 'why the run did not go through' },
      tooManyErrors: { type: 'boolean', description: 'there were more than results has' },
      results: {
        type: 'array',
        items: {
          type: 'object',
          properties: { description: { type: 'string' }, fixed: { type: 'boolean' } },
          required: ['description', 'fixed'],
          additionalProperties: false,
        },
      },
    },
    required: [
      'endTime',
      'error',
      'fixingErrors',
      'inProgress',
      'results',
      'startTime',
      'tooManyErrors',
    ],
    additionalProperties: false,
  },
}

export const snapshotRequest: NamedSchema = {
  name: 'databaseSnapshotCreate',
  schema: {
    type: 'object',
    properties: {
      path: {
        type: ['string', 'null'],
        maxLength: 1024,
        description:
          'of a new file in the folder of the snapshots; __DB_DIR__, __DB_FILE__, __DATE__, __TIME__ and __RAFT_INDEX__ stand for what they say',
      },
    },
  },
}

export const snapshotDetail: NamedSchema = {
  name: 'databaseSnapshotCreateResult',
  schema: {
    type: 'object',
    properties: { path: { type: 'string', description: 'on the controller that was asked' } },
    required: ['path'],
    additionalProperties: false,
  },
}

const string = { type: 'string' } as const
const strings = { type: 'array', items: string } as const

export const auditDetail: NamedSchema = {
  name: 'auditDetail',
  schema: {
    type: 'object',
    properties: {
      index: { type: 'integer', description: 'of the log' },
      at: { type: 'string', format: 'date-time', description: 'log time' },
      actor: {
        type: 'object',
        properties: { id: string, name: { ...string, description: 'as it was called then' } },
        required: ['id', 'name'],
        additionalProperties: false,
      },
      session: string,
      address: string,
      action: string,
      entity: string,
      entityId: string,
      fields: { ...strings, description: 'names of the fields that an update changed' },
      also: { ...strings, description: 'what else the same entry wrote' },
      outcome: {
        ...string,
        description: 'done, the code of the refusal, or requested before it is carried out',
      },
      reason: { ...string, description: 'why; empty where none was given' },
    },
    required: [
      'action',
      'actor',
      'address',
      'also',
      'at',
      'entity',
      'entityId',
      'fields',
      'index',
      'outcome',
      'reason',
      'session',
    ],
    additionalProperties: false,
  },
}
