import { parentPort } from 'node:worker_threads'

import { dataFault, schemaFault } from '../api/schemas/json-schema.ts'
import { requirePresent } from '../lib/assert.ts'
import type { SchemaValidationRequest } from './schema-messages.ts'

// Program of the schema thread, which validates values with schemas that users wrote. The main
// thread terminates this thread when a schema takes too long.

const main = requirePresent(parentPort, 'this file runs as the schema thread')

main.on('message', ({ schema, data }: SchemaValidationRequest) => {
  main.postMessage(data === undefined ? schemaFault(schema) : dataFault(schema, data))
})
// The first validation in a thread takes many times longer than later ones. This call is the first
// one, so that a user's schema is not blamed for its time.
dataFault({ type: 'object', properties: { at: { type: 'string', format: 'date-time' } } }, {})
main.postMessage('ready')
