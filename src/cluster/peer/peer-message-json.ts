import {
  type DescField,
  type DescMessage,
  type Message,
  type MessageInitShape,
  ScalarType,
} from '@bufbuild/protobuf'

import { Problem } from '../../lib/problems.ts'
import { isCount, isJsonObject } from '../../lib/text/json-value.ts'

// The form in which release 0.1 writes the messages of proto/peer.proto; no later release sends it
// to one that understands the other.

type Json = Readonly<Record<string, unknown>>

/** Bytes stand in hex but for this field, which is in base64. */
const BASE64_FIELD = 'configuration'

export function fieldsOf(schema: DescMessage, message: Message): Json {
  const values = message as unknown as Json
  const [only] = schema.oneofs.filter(({ fields }) => fields.length === schema.fields.length)
  if (only !== undefined) return actorFields(only.fields, values[only.localName] as Chosen)
  return Object.fromEntries(
    schema.fields.map((field) => {
      const value = values[field.localName]
      if (field.fieldKind === 'list') return [field.localName, value]
      return [field.localName, value === undefined ? null : textOf(field, value)]
    }),
  )
}

/** @throws {Problem} COULD_NOT_VALIDATE. */
export function jsonIn(payload: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload))
  } catch {
    throw malformed('the message is no JSON')
  }
}

/** @throws {Problem} COULD_NOT_VALIDATE. */
export function initOf<T extends DescMessage>(schema: T, json: unknown): MessageInitShape<T> {
  const values = objectOf(json, schema.name)
  const [only] = schema.oneofs.filter(({ fields }) => fields.length === schema.fields.length)
  if (only !== undefined) return { [only.localName]: actorOf(only.fields, values) } as never
  const init = schema.fields.flatMap((field) => {
    const value = values[field.localName]
    return value === undefined || value === null
      ? []
      : [[field.localName, valueOf(field, value)] as const]
  })
  return Object.fromEntries(init) as never
}

interface Chosen {
  readonly case?: string
  readonly value?: Message
}

/** A message that is nothing but a choice stands as the name and the fields of what was chosen. */
function actorFields(fields: readonly DescField[], chosen: Chosen): Json {
  const field = fields.find(({ localName }) => localName === chosen.case)
  if (field?.message === undefined || chosen.value === undefined) return {}
  return { case: chosen.case, value: fieldsOf(field.message, chosen.value) }
}

function actorOf(fields: readonly DescField[], values: Json): unknown {
  const field = fields.find(({ localName }) => localName === values['case'])
  if (field?.message === undefined) return { case: undefined }
  return { case: field.localName, value: initOf(field.message, values['value']) }
}

function textOf(field: DescField, value: unknown): unknown {
  if (field.message !== undefined) return fieldsOf(field.message, value as Message)
  if (typeof value === 'bigint') return Number(value)
  if (!(value instanceof Uint8Array)) return value
  return Buffer.from(value).toString(encodingOf(field))
}

function valueOf(field: DescField, value: unknown): unknown {
  if (field.fieldKind === 'list') return listOf(field, value)
  if (field.message !== undefined) return initOf(field.message, value)
  switch (field.scalar) {
    case ScalarType.BOOL:
      return value === true
    case ScalarType.BYTES:
      return Uint8Array.from(Buffer.from(stringOf(field, value), encodingOf(field)))
    case ScalarType.UINT64:
      // Some are text in our own words, too.
      return field.fieldKind === 'scalar' && field.longAsString
        ? stringOf(field, value)
        : BigInt(countOf(field, value))
    case ScalarType.UINT32:
      return countOf(field, value)
    case ScalarType.INT32:
      if (Number.isSafeInteger(value)) return value
      throw malformed(`${field.localName} is no number`)
    default:
      return stringOf(field, value)
  }
}

const encodingOf = ({ localName }: DescField): 'base64' | 'hex' =>
  localName === BASE64_FIELD ? 'base64' : 'hex'

function listOf({ localName }: DescField, value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.map(String)
  throw malformed(`${localName} is no list`)
}

function stringOf({ localName }: DescField, value: unknown): string {
  if (typeof value === 'string') return value
  throw malformed(`${localName} is no text`)
}

function countOf({ localName }: DescField, value: unknown): number {
  if (isCount(value)) return value
  throw malformed(`${localName} is no count`)
}

function objectOf(value: unknown, name: string): Json {
  if (isJsonObject(value)) return value as Json
  throw malformed(`${name} is no object`)
}

function malformed(detail: string): Problem {
  return new Problem('COULD_NOT_VALIDATE', { detail })
}
