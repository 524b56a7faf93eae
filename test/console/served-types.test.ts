import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { format, type FormatOptions } from 'oxfmt'
import { expect, test } from 'vitest'

import { type ServedDocument, servedTypes } from '../../tools/served-types.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { bases } from '../support/served-answers.ts'

// Goal: controllers serve the fields that the console reads.

const root = join(import.meta.dirname, '../..')
const path = 'src/console/client/served-types.ts'

/**
 * Operations from whose responses the console reads fields by name. It reads all others according
 * to the schema that controllers serve.
 */
const operations = [
  'GET /edge/management/v1/access/explain',
  'POST /edge/management/v1/access/preview',
  'GET /edge/management/v1/config-types',
  'GET /edge/management/v1/controllers',
  'GET /edge/management/v1/current-identity',
  'GET /edge/management/v1/history',
  'POST /edge/management/v1/jwt-signer-setup/discover',
  'POST /edge/management/v1/jwt-signer-setup/test',
  'GET /edge/management/v1/traffic/services',
  'GET /edge/management/v1/traffic/services/{id}',
  'GET /fabric/v1/audit',
  'GET /fabric/v1/cluster/backups',
  'GET /fabric/v1/cluster/history',
  'POST /fabric/v1/cluster/invite',
  'GET /fabric/v1/cluster/list-tickets',
  'POST /fabric/v1/cluster/plan',
  'GET /fabric/v1/cluster/status',
]

const { controller } = await controllerForFile()

async function documentAt(base: string): Promise<ServedDocument> {
  const { payload } = await controller.app.inject(`${base}/openapi.json`)
  return JSON.parse(payload) as ServedDocument
}

test('the types in the console’s source equal those in the API documents of a controller (make console-types updates them)', async () => {
  const { management, fabric } = bases
  const documents = {
    [management]: await documentAt(management),
    [fabric]: await documentAt(fabric),
  }
  const options = JSON.parse(readFileSync(join(root, '.oxfmtrc.json'), 'utf8')) as FormatOptions
  const { code, errors } = await format(path, servedTypes(documents, operations), options)
  expect(errors).toEqual([])
  if (process.env['FLOTILLA_RECORD'] === '1') writeFileSync(join(root, path), code)
  expect(code).toBe(readFileSync(join(root, path), 'utf8'))
})
