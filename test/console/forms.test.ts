import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

import { ApiDocument, type ServedDocument } from '../../src/console/client/api-document.ts'
import { sparklinePath, summarizeValues } from '../../src/console/pages/cluster/sparkline.ts'
import {
  buildFilter,
  parseListState,
  formatListState,
  withUsualSort,
} from '../../src/console/pages/records/filters.ts'
import {
  changedFormFields,
  draftFromRecord,
  initialDraft,
  groupFieldFault,
  toFormFault,
  buildFormFields,
  fieldLabel,
  isFieldShown,
  buildPatchBody,
  pickShownFields,
  removeDraftSecrets,
} from '../../src/console/pages/records/form-model.ts'
import type { FormField } from '../../src/console/pages/records/form-field.ts'
import { postureFields } from '../../src/entities/kinds/posture-check.ts'
import { isDeepEqual } from '../../src/console/pages/records/json-values.ts'
import { texts } from '../../src/console/texts.ts'
import { visibleText } from '../../src/console/app/visible-text.ts'
import { computedColumns } from '../../src/console/pages/records/computed-columns.ts'
import { findKindAtPath, kinds } from '../../src/console/pages/records/kinds.ts'
import { controllerForFile } from '../api/support/for-file.ts'

// Goal: for every kind of record, the form follows from the schema that a controller serves, and
// saving sends only the changed fields.

const { controller } = await controllerForFile()
const { body } = await controller.app.inject({
  method: 'GET',
  url: '/edge/management/v1/openapi.json',
})
const served = new ApiDocument(JSON.parse(body) as ServedDocument)

/**
 * A field as text: `name* text`, where the asterisk marks a required field and the second word is
 * its widget.
 */
function shown({ name, isRequired, widget }: FormField): string {
  const more = 'kind' in widget ? ` of ${widget.kind}` : ''
  const options =
    widget.is === 'choice' || widget.is === 'choices' ? ` ${widget.options.join('|')}` : ''
  return `${name}${isRequired ? '*' : ''} ${widget.is}${more}${options}${innerOf(widget)}`
}

function innerOf(widget: FormField['widget']): string {
  switch (widget.is) {
    case 'group':
      return ` {${widget.fields.map(shown).join(', ')}}`
    case 'rows':
      return ` of ${shown(widget.item)}`
    case 'oneOf':
      return ` of ${widget.options.map(({ field }) => shown(field)).join(' or ')}`
    default:
      return ''
  }
}

function formsOf(method: 'post' | 'patch'): Record<string, string[]> {
  return Object.fromEntries(
    kinds.flatMap((kind) => {
      const path = method === 'post' ? `/${kind.path}` : `/${kind.path}/{id}`
      const schema = served.operation(method, path)?.body
      if (schema === null || schema === undefined) return []
      return [[kind.path, buildFormFields(schema, kind).map(shown)]]
    }),
  )
}

test('the console’s form for each kind of record equals the recorded form (FLOTILLA_RECORD=1 records it, make fmt formats it)', () => {
  const path = join(import.meta.dirname, 'forms.json')
  const now = { create: formsOf('post'), change: formsOf('patch') }
  if (process.env['FLOTILLA_RECORD'] === '1') {
    writeFileSync(path, `${JSON.stringify(now, null, 2)}\n`)
  }
  expect(now).toEqual(JSON.parse(readFileSync(path, 'utf8')))
})

test('every kind of record that can be created has a page in the console', () => {
  const created = served.paths.filter(
    (path) =>
      /^\/[a-z-]+$/.test(path) &&
      served.operation('post', path) !== null &&
      served.operation('get', `${path}/{id}`) !== null,
  )
  expect(created.filter((path) => findKindAtPath(path.slice(1)) === null)).toEqual([])
  expect(created.length).toBeGreaterThan(12)
})

test('the columns and hints of the console’s lists refer to existing fields', () => {
  const broken = kinds.flatMap((kind) => {
    const list = served.operation('get', `/${kind.path}`)
    const shownFields = Object.keys(list?.row?.properties ?? {})
    const schema = served.operation('post', `/${kind.path}`)?.body
    const writable = Object.keys(schema?.properties ?? {})
    const hints = writable.length === 0 ? [] : Object.keys(kind.fields)
    const advanced = writable.includes('tags') ? kind.advanced : []
    return [
      ...kind.columns.filter((name) => !shownFields.includes(name) && !computedColumns.has(name)),
      ...[...hints, ...advanced].filter((name) => !writable.includes(name)),
    ].map((name) => `${kind.path}: ${name}`)
  })
  expect(broken).toEqual([])
})

const service = findKindAtPath('services')
if (service === null) throw new Error('services are a kind')
const creation = served.operation('post', '/services')
const fields = buildFormFields(creation?.body ?? {}, service)

test('the draft of a new service initially contains only that encryption is required', () => {
  expect(initialDraft(fields)).toEqual({ encryptionRequired: true })
  expect(creation?.permission).toBe('service.create')
})

test('the console’s draft of a record contains references as IDs, and its patch contains only the changes', () => {
  const record = {
    id: 'a',
    name: 'wiki',
    configs: ['c'],
    encryptionRequired: true,
    tags: { b: 1, a: [2] },
    terminatorStrategy: 'smartrouting',
    _links: {},
  }
  const draft = draftFromRecord(record, fields)
  expect(Object.keys(draft)).not.toContain('_links')
  const changed = { ...draft, name: 'mail', tags: { a: [2], b: 1 }, configs: ['c', ''] }
  expect(buildPatchBody(changedFormFields(draft, changed, fields))).toEqual({
    name: 'mail',
    configs: ['c', ''],
  })
  const { terminatorStrategy: _, ...without } = draft
  expect(buildPatchBody(changedFormFields(draft, without, fields))).toEqual({
    terminatorStrategy: null,
  })
  const terminator = findKindAtPath('terminators')
  const ofTerminator = buildFormFields(
    served.operation('post', '/terminators')?.body ?? {},
    terminator ?? service,
  )
  const shownRecord = {
    service: { entity: 'services', id: 's1', name: 'wiki' },
    address: 'tcp:a:1',
  }
  expect(draftFromRecord(shownRecord, ofTerminator)).toEqual({ service: 's1', address: 'tcp:a:1' })
})

test('a patch by the console contains empty values for the cleared members of a group, because the API keeps members that are absent', () => {
  const policy = findKindAtPath('auth-policies')
  const ofPolicy = buildFormFields(
    served.operation('patch', '/auth-policies/{id}')?.body ?? {},
    policy ?? service,
  )
  const before = {
    primary: { extJwt: { allowed: true, allowedSigners: ['s'] }, cert: { allowed: true } },
    secondary: { requireTotp: false, requireExtJwtSigner: 's' },
  }
  const after = {
    primary: { extJwt: { allowed: true }, cert: { allowed: true } },
    secondary: { requireTotp: false },
  }
  expect(buildPatchBody(changedFormFields(before, after, ofPolicy))).toEqual({
    primary: { extJwt: { allowed: true, allowedSigners: [] }, cert: { allowed: true } },
    secondary: { requireTotp: false, requireExtJwtSigner: '' },
  })
})

test('a null value equals a missing one in a draft, but a list in another order or an empty text is a change', () => {
  expect(isDeepEqual({ a: null }, {})).toBe(true)
  expect(isDeepEqual([1, 2], [2, 1])).toBe(false)
  expect(isDeepEqual('', null)).toBe(false)
})

test('a stored draft contains no password', () => {
  const authenticator = findKindAtPath('authenticators')
  const schema = served.operation('post', '/authenticators')?.body
  const ofAuthenticator = buildFormFields(schema ?? {}, authenticator ?? service)
  expect(removeDraftSecrets({ username: 'ada', password: 'secret' }, ofAuthenticator)).toEqual({
    username: 'ada',
  })
})

test('a refusal by the API is shown at the field that it concerns, without terms of the API', () => {
  const faultOf = (field: string, reason: string, form = fields) =>
    toFormFault({ field, reason }, form)
  expect(faultOf('body.name', 'is empty')).toEqual({ name: 'name', below: '', reason: 'Is empty' })
  expect(faultOf('nothing', 'x')).toBeNull()
  expect(faultOf('name', "duplicate value 'a' in unique index on identities store")?.reason).toBe(
    texts.faults.duplicate,
  )
  expect(faultOf('name', 'name is required')?.reason).toBe(texts.faults.required)
  const config = findKindAtPath('configs')
  const ofConfig = buildFormFields(
    served.operation('post', '/configs')?.body ?? {},
    config ?? service,
  )
  expect(faultOf('(root)', '(root) is invalid: must be object', ofConfig)).toEqual({
    name: 'data',
    below: '',
    reason: 'Must be object',
  })
  expect(faultOf('ports.0.low', 'ports.0.low is invalid: must be integer', ofConfig)).toEqual({
    name: 'data',
    below: 'ports.0.low',
    reason: 'Must be integer',
  })
  const missing = "must have required property 'port'"
  expect(faultOf('(root)', `(root) is invalid: ${missing}`, ofConfig)).toEqual({
    name: 'data',
    below: 'port',
    reason: texts.faults.required,
  })
})

test('a refusal of a field in a group is shown at the inner field', () => {
  const policy = findKindAtPath('auth-policies')
  const ofPolicy = buildFormFields(
    served.operation('post', '/auth-policies')?.body ?? {},
    policy ?? service,
  )
  const field = 'primary.updb.maxAttempts'
  const fault = toFormFault({ field, reason: `${field} in body must be an integer` }, ofPolicy)
  expect(fault).toEqual({
    name: 'primary',
    below: 'updb.maxAttempts',
    reason: 'Must be an integer',
  })
  const primary = ofPolicy.find(({ name }) => name === 'primary')?.widget
  const inner = primary?.is === 'group' ? primary.fields : []
  expect(groupFieldFault(fault, inner)).toEqual({
    name: 'updb',
    below: 'maxAttempts',
    reason: 'Must be an integer',
  })
})

test('a character that changes the text direction is shown as a visible code', () => {
  expect(visibleText('invoice\u202Efdp.exe')).toBe('invoice‹U+202E›fdp.exe')
  expect(visibleText('Größe 大 ✓')).toBe('Größe 大 ✓')
})

test('the name of a field is displayed as separate words', () => {
  expect(
    ['isTunnelerEnabled', 'authPolicyId', 'jwksEndpoint', 'serviceHostingCosts'].map(fieldLabel),
  ).toEqual(['Tunneler enabled', 'Auth policy ID', 'JWKS endpoint', 'Service hosting costs'])
})

test('text that the user types becomes a filter in which quotes are escaped', () => {
  expect(buildFilter('a" or true', ['name'])).toBe(
    'name icontains "a\\" or true" or id = "a\\" or true"',
  )
  expect(buildFilter('= isAdmin = true', ['name'])).toBe('isAdmin = true')
  expect(buildFilter('  ', ['name'])).toBe('')
  expect(buildFilter('#staff #a"b', ['name'])).toBe(
    'anyOf(roleAttributes) = "staff" and anyOf(roleAttributes) = "a\\"b"',
  )
})

test('the line of a chart connects the measured values, and can end before the last ones', () => {
  expect(sparklinePath([0, 2, null, 1], 30, 12)).toBe('M0.0 11.0L10.0 1.0L30.0 6.0')
  expect(sparklinePath([0, 2, null, 1], 30, 12, 2)).toBe('M0.0 11.0L10.0 1.0')
  expect(sparklinePath([null], 30, 12)).toBe('')
  expect(summarizeValues([null, 3, 1, null])).toEqual({ last: 1, most: 3, sum: 4 })
})

test('the address of a list page contains the filters, sorting and page number', () => {
  const state = {
    typed: 'a&b',
    sort: 'name',
    isDescending: true,
    offset: 60,
    facets: { type: 'user' },
  }
  expect(parseListState(new URLSearchParams(formatListState(state)))).toEqual(state)
  expect(formatListState(parseListState(new URLSearchParams()))).toBe('')
})

test('the form of a posture check shows the fields of its type, and requires those that the type requires', () => {
  const posture = findKindAtPath('posture-checks')
  const ofPosture = buildFormFields(
    served.operation('post', '/posture-checks')?.body ?? {},
    posture ?? service,
  )
  const common = ['name', 'typeId', 'roleAttributes', 'tags']
  const shownFor = (typeId: string) =>
    ofPosture.filter((field) => isFieldShown(field, { typeId }) && !common.includes(field.name))
  const of = Object.keys(postureFields).map((typeId) => [
    typeId,
    shownFor(typeId)
      .map(({ name, isRequired }) => `${name}${isRequired ? '*' : ''}`)
      .sort(),
  ])
  expect(of).toEqual(
    Object.entries(postureFields).map(([typeId, { required, optional }]) => [
      typeId,
      [...required.map((name) => `${name}*`), ...optional].sort(),
    ]),
  )
  const draft = { ...initialDraft(ofPosture), name: 'a', typeId: 'MAC', macAddresses: ['b'] }
  expect(pickShownFields(draft, ofPosture)).toEqual({
    name: 'a',
    typeId: 'MAC',
    macAddresses: ['b'],
  })
})

test('a list uses the usual sort of its kind, also a descending one, until the user sorts it', () => {
  const state = parseListState(new URLSearchParams(''))
  expect(withUsualSort(state, { sort: '-expiresAt' })).toMatchObject({
    sort: 'expiresAt',
    isDescending: true,
  })
  const sorted = parseListState(new URLSearchParams('sort=method'))
  expect(withUsualSort(sorted, { sort: '-expiresAt' })).toEqual(sorted)
})
