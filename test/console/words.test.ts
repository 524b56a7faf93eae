import { expect, test } from 'vitest'

import { ApiDocument, type ServedDocument } from '../../src/console/client/api-document.ts'
import { pageTexts } from '../../src/console/page-texts.ts'
import { buildFormFields, fieldLabel } from '../../src/console/pages/records/form-model.ts'
import type { FormField } from '../../src/console/pages/records/form-field.ts'
import { kinds } from '../../src/console/pages/records/kinds.ts'
import { texts } from '../../src/console/texts.ts'
import { historyFields } from '../../src/entities/history-kinds.ts'
import { controllerForFile } from '../api/support/for-file.ts'

// Goal: the console speaks the words of its users, not the names of the API.

/**
 * Names of the API that no text may contain. Commands for a terminal, error codes and names of
 * OpenZiti such as `intercept.v1` are not among them.
 */
const API_NAMES =
  /\b(sdk|chan|ott|ottca|updb|oidc|millis|milliseconds|namespaces?|cert pem|auth enabled)\b/i
/** Parts of API names that are spelled like this only there. */
const EXACT = /\bits id\b|[A-Z]{3,}_[A-Z_]+|changes\.\d/

/** Each text of a module, with its path; for a function, its source. */
function textsIn(value: unknown, path: string): readonly (readonly [string, string])[] {
  if (typeof value === 'string') return [[path, value]]
  if (typeof value === 'function') {
    // Names in `${…}` are not shown.
    const source = String(value).replace(/\$\{[^}]*\}/g, '')
    return [...source.matchAll(/'([^']*)'|`([^`]*)`/g)].map(([, a = '', b = '']) => [path, a || b])
  }
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, one]) => textsIn(one, `${path}.${name}`))
}

function labelsIn(
  fields: readonly FormField[],
  path: string,
): readonly (readonly [string, string])[] {
  return fields.flatMap(({ name, label, help, widget }) => [
    [`${path}.${name}`, label] as const,
    [`${path}.${name}`, help ?? ''] as const,
    ...(widget.is === 'group' ? labelsIn(widget.fields, `${path}.${name}`) : []),
    ...(widget.is === 'rows' ? labelsIn([widget.item], `${path}.${name}`) : []),
  ])
}

const bad = (found: readonly (readonly [string, string])[]) =>
  found.filter(([, text]) => API_NAMES.test(text) || EXACT.test(text)).map((one) => one.join(': '))

test('no text of the console contains a name of the API', () => {
  const all = [...textsIn(texts, 'texts'), ...textsIn(pageTexts, 'pageTexts')]
  expect(all.length).toBeGreaterThan(500)
  expect(bad(all)).toEqual([])
})

const { controller } = await controllerForFile()

test('no label or help of a form contains a name of the API', async () => {
  const { body } = await controller.app.inject({
    method: 'GET',
    url: '/edge/management/v1/openapi.json',
  })
  const served = new ApiDocument(JSON.parse(body) as ServedDocument)
  const labels = kinds.flatMap((kind) => {
    const schema = served.operation('post', `/${kind.path}`)?.body
    return schema === null || schema === undefined
      ? []
      : labelsIn(buildFormFields(schema, kind), kind.path)
  })
  expect(labels.length).toBeGreaterThan(100)
  expect(bad(labels)).toEqual([])
})

test('no field of a change in Activity has a label that is a name of the API', () => {
  const names = [...historyFields.values()].flatMap(({ kept }) => kept)
  expect(bad(names.map((name) => [name, fieldLabel(name)]))).toEqual([])
})
