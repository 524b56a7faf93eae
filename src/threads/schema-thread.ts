import { parentPort } from 'node:worker_threads'

import { dataFault, schemaFault } from '../api/schemas/json-schema.ts'
import { requirePresent } from '../lib/assert.ts'
import type { SchemaQuestion } from './schema-messages.ts'

// Schema thread, for schemas of users: the main thread ends it when a schema takes too long.

const main = requirePresent(parentPort, 'this file runs as the schema thread')

main.on('message', ({ schema, data }: SchemaQuestion) => {
  main.postMessage(data === undefined ? schemaFault(schema) : dataFault(schema, data))
})
// The first validation in a thread takes many times longer than later ones. It runs here, so that
// it does not count against a user's schema.
dataFault({ type: 'object', properties: { at: { type: 'string', format: 'date-time' } } }, {})
main.postMessage('ready')
