import { parentPort } from 'node:worker_threads'

import { dataFault, schemaFault } from '../api/schemas/json-schema.ts'
import { present } from '../lib/assert.ts'
import type { SchemaQuestion } from './schema-messages.ts'

// Thread of the schemas that users bring: it is ended from outside when one of them does not come
// to an end.

const main = present(parentPort, 'schemas have a thread of their own')

main.on('message', ({ schema, data }: SchemaQuestion) => {
  main.postMessage(data === undefined ? schemaFault(schema) : dataFault(schema, data))
})
// The first judgement of a thread takes many times longer than the next ones: what is late is not
// to be the schema's fault.
dataFault({ type: 'object', properties: { at: { type: 'string', format: 'date-time' } } }, {})
main.postMessage('ready')
