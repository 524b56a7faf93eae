import { describe, expect, test } from 'vitest'

import type { ServedSchema } from '../../src/console/client/api-document.ts'
import {
  canWidgetShow,
  initialDraft,
  groupFieldFault,
  itemFault,
  groupWidget,
} from '../../src/console/pages/records/form-model.ts'
import {
  conditionalRequirements,
  matchesSchema,
  resolveDataSchema,
} from '../../src/console/pages/records/data-schema.ts'
import type { FormField, GroupWidget } from '../../src/console/pages/records/form-field.ts'
import { withMember } from '../../src/console/pages/records/json-values.ts'
import { seededConfigTypes } from '../../src/fsm/seed/seed-config-types.ts'

// Goal: the form of a config follows from the schema of its type. A value that a form cannot
// express is shown as JSON, and no change in the form removes a member that it does not show.

function schemaOf(name: string): ServedSchema {
  const type = seededConfigTypes.find((one) => one.name === name)
  if (type === undefined) throw new Error(`no config type is named ${name}`)
  return resolveDataSchema(type.schema as ServedSchema)
}

function formOf(schema: ServedSchema): GroupWidget {
  const widget = groupWidget(resolveDataSchema(schema))
  if (widget === null) throw new Error('the schema has no form')
  return widget
}

function shown({ name, isRequired, widget }: FormField): string {
  const mark = `${name}${isRequired ? '*' : ''} ${widget.is}`
  switch (widget.is) {
    case 'number':
      return `${mark} ${widget.minimum}..${widget.maximum}`
    case 'choice':
    case 'choices':
      return `${mark} ${widget.options.join('|')}`
    case 'group':
      return `${mark} {${widget.fields.map(shown).join(', ')}}`
    case 'rows':
      return `${mark} [${shown(widget.item)}]`
    case 'oneOf':
      return `${mark} (${widget.options.map(({ field }) => shown(field)).join(' or ')})`
    default:
      return mark
  }
}

const form = (name: string): readonly string[] => formOf(schemaOf(name)).fields.map(shown)

describe('The console’s form of a config type', () => {
  test('has a field for each member of intercept.v1', () => {
    expect(form('intercept.v1')).toEqual([
      'protocols* choices tcp|udp',
      'addresses* texts',
      'portRanges* rows [portRanges group {low* number 0..65535, high* number 0..65535}]',
      'dialOptions group {identity text, connectTimeoutSeconds number 0..2147483647}',
      'sourceIp text',
      'allowedSourceAddresses texts',
    ])
  })

  test('offers for host.v1 a choice between the variants of the schema, and flags that are either true or absent', () => {
    const fields = formOf(schemaOf('host.v1')).fields
    const ip = (kind: string): string =>
      `${kind} address translation* group {from text, to text, prefixLength number 0..${kind === 'Ipv4' ? 32 : 128}}`
    expect(fields.map(shown).slice(0, 10)).toEqual([
      'protocol choice tcp|udp',
      'address text',
      'port number 0..65535',
      'forwardProtocol flag',
      'allowedProtocols choices tcp|udp',
      'forwardAddress flag',
      'allowedAddresses texts',
      `forwardAddressTranslations rows [forwardAddressTranslations oneOf (${ip('Ipv4')} or ${ip('Ipv6')})]`,
      'forwardPort flag',
      'allowedPortRanges rows [allowedPortRanges group {low* number 0..65535, high* number 0..65535}]',
    ])
    expect(fields.find(({ name }) => name === 'forwardPort')?.widget).toEqual({
      is: 'flag',
      isOnlyTrue: true,
    })
  })

  test('contains for host.v2 lists of objects, and a nested form for each terminator', () => {
    const [terminators] = formOf(schemaOf('host.v2')).fields
    const widget = terminators?.widget
    const inner =
      widget?.is === 'rows' && widget.item.widget.is === 'group' ? widget.item.widget : null
    expect(inner?.fields.map(({ name }) => name)).toEqual(
      formOf(schemaOf('host.v1')).fields.map(({ name }) => name),
    )
    expect(inner?.requires?.({ forwardPort: true })).toEqual([
      'protocol',
      'address',
      'allowedPortRanges',
    ])
  })

  test('requires the fields that the conditions in the schema of host.v1 require for the current values', () => {
    const { requires } = formOf(schemaOf('host.v1'))
    expect(requires?.({})).toEqual(['protocol', 'address', 'port'])
    expect(requires?.({ forwardProtocol: true, forwardAddress: true })).toEqual([
      'allowedProtocols',
      'allowedAddresses',
      'port',
    ])
    expect(conditionalRequirements({ type: 'object' })).toBeNull()
  })

  test.each(seededConfigTypes.map(({ name }) => name))(
    'shows no member of %s as raw JSON',
    (name) => {
      expect(form(name).filter((one) => one.includes(' json'))).toEqual([])
    },
  )

  test('shows as JSON those members of an operator’s config type for which a form has no field', () => {
    const schema: ServedSchema = {
      type: 'object',
      required: ['mode', 'level'],
      properties: {
        mode: { enum: ['a', 'b', null] },
        level: { type: ['string', 'integer'] },
        free: { type: 'object', additionalProperties: true },
        mixed: { enum: [1, 'two'] },
        anything: {},
        grid: { type: 'array', items: { type: 'array', items: { type: 'number' } } },
        self: { $ref: '#' },
      },
    }
    const fields = formOf(schema).fields.map(shown)
    expect(fields.slice(0, 6)).toEqual([
      'mode* choice a|b',
      'level* json',
      'free json',
      'mixed json',
      'anything json',
      'grid rows [grid rows [grid number null..null]]',
    ])
    expect(fields[6]).toMatch(/^self group \{mode\* choice/)
  })

  test('has a limited size if the schema refers to itself endlessly', () => {
    const members = Object.fromEntries(
      Array.from({ length: 40 }, (_, k) => [`m${k}`, { $ref: '#' } as ServedSchema]),
    )
    const text = JSON.stringify(resolveDataSchema({ type: 'object', properties: members }))
    expect(text.length).toBeLessThan(200_000)
  })

  test('shows members in their usual order even if the served schema sorts them by name', () => {
    const names = ['high', 'low', 'zone']
    const properties = Object.fromEntries(names.map((one) => [one, { type: 'integer' }]))
    expect(formOf({ type: 'object', properties }).fields.map(({ name }) => name)).toEqual([
      'low',
      'high',
      'zone',
    ])
  })

  test('contains at first only the members that the schema requires', () => {
    expect(initialDraft(formOf(schemaOf('intercept.v1')).fields)).toEqual({
      protocols: [],
      addresses: [],
      portRanges: [],
    })
  })
})

describe('A config value in the console’s form', () => {
  test('is shown in a field only if the field can express all of it', () => {
    const number = { is: 'number', minimum: null, maximum: null } as const
    const choice = { is: 'choice', options: ['tcp'], names: {}, mayBeNone: false } as const
    expect([
      canWidgetShow(number, '80'),
      canWidgetShow(number, 80),
      canWidgetShow(number, undefined),
    ]).toEqual([false, true, true])
    expect([canWidgetShow(choice, 'sctp'), canWidgetShow(choice, 'tcp')]).toEqual([false, true])
    expect([
      canWidgetShow({ is: 'texts' }, ['a', 1]),
      canWidgetShow({ is: 'texts' }, ['a\nb']),
    ]).toEqual([false, false])
    expect(canWidgetShow({ is: 'flag', isOnlyTrue: true }, false)).toBe(false)
  })

  test('keeps members that the form does not show, and keeps their order', () => {
    const data = { port: 80, own: { a: 1 }, address: 'x' }
    expect(JSON.stringify(withMember(data, 'port', 443))).toBe(
      '{"port":443,"own":{"a":1},"address":"x"}',
    )
    expect(withMember(data, 'port', undefined)).toEqual({ own: { a: 1 }, address: 'x' })
  })

  test('matches only those variants of a schema whose fields and formats fit it', () => {
    const [v4, v6] = ['ipv4', 'ipv6'].map((format): ServedSchema => ({
      type: 'object',
      additionalProperties: false,
      properties: { from: { type: 'string', format } },
    }))
    expect([v4, v6].map((one) => matchesSchema(one ?? {}, { from: '10.0.0.1' }))).toEqual([
      true,
      false,
    ])
    expect([v4, v6].map((one) => matchesSchema(one ?? {}, { from: 'fd00::1' }))).toEqual([
      false,
      true,
    ])
    expect(matchesSchema(v4 ?? {}, { to: 1 })).toBe(false)
  })
})

describe('A fault in the console’s form', () => {
  test('is shown at the faulty field of the faulty item in a list', () => {
    const fault = { name: 'portRanges', below: '1.low', reason: 'Must be integer' }
    const { fields } = formOf({ type: 'object', properties: { low: { type: 'integer' } } })
    expect(itemFault(fault, 0)).toBeNull()
    const item = itemFault(fault, 1)
    expect(item).toEqual({ name: '1', below: 'low', reason: 'Must be integer' })
    expect(groupFieldFault(item, fields)).toEqual({
      name: 'low',
      below: '',
      reason: 'Must be integer',
    })
  })
})
