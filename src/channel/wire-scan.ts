import {
  create,
  type DescField,
  type DescMessage,
  mergeFromBinary,
  type MessageShape,
  ScalarType,
} from '@bufbuild/protobuf'

/**
 * Counts the elements of a body before the body is decoded, because a decoded empty message takes a
 * hundred times as many bytes as on the wire. Each field on the wire counts as one element, and
 * each byte of a packed list as one. A nested message counts four more, plus its elements or, if
 * that is more, the number of fields of its schema.
 */

/** Additional elements that a nested message counts, because decoding creates an object for it. */
const MESSAGE_ELEMENTS = 4
/**
 * Default maximum elements of one field including its content; the decoder decodes such a field in
 * one step.
 */
export const FIELD_ELEMENTS_MAX = 4096
/** A step of decoding ends once this many elements are decoded. */
const STEP_ELEMENTS = 512
/** Maximum nesting depth; no message of the protocol has this many levels. */
const DEPTH_MAX = 8
const VARINT_BYTES_MAX = 10

const wire = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const

/**
 * A field according to the protobuf schema. The decoder follows the schema and ignores the wire
 * type in the tag.
 */
interface Field {
  readonly type: number
  /**
   * True if the field holds repeated numbers, which may also be packed: encoded one after another
   * without tags.
   */
  readonly isList: boolean
  /** Fields of the nested message; null for other types. */
  readonly fields: Fields | null
}
interface Fields {
  readonly byNumber: ReadonlyMap<number, Field>
  /**
   * Number of fields that the decoded message has, including fields that are absent on the wire.
   */
  readonly membersMade: number
}

const known = new WeakMap<DescMessage, Fields>()

function fieldsOf(schema: DescMessage): Fields {
  const before = known.get(schema)
  if (before !== undefined) return before
  const byNumber = new Map<number, Field>()
  const fields: Fields = { byNumber, membersMade: schema.members.length }
  known.set(schema, fields)
  for (const field of schema.fields) byNumber.set(field.number, fieldOf(field))
  return fields
}

function fieldOf(field: DescField): Field {
  if (field.fieldKind === 'map') {
    const value = valueOf(field.mapKind, field.scalar, field.message)
    const key = valueOf('scalar', field.mapKey, undefined)
    const byNumber = new Map([[1, key] as const, [2, value] as const])
    // Includes the default value that the decoder creates for a map entry without a value.
    const membersMade = value.fields === null ? 0 : MESSAGE_ELEMENTS + value.fields.membersMade
    return { type: wire.bytes, isList: false, fields: { byNumber, membersMade } }
  }
  if (field.fieldKind === 'list') {
    const each = valueOf(field.listKind, field.scalar, field.message)
    return { ...each, isList: each.type !== wire.bytes }
  }
  return valueOf(field.fieldKind, field.scalar, field.message)
}

function valueOf(
  kind: 'message' | 'enum' | 'scalar',
  scalar: ScalarType | undefined,
  message: DescMessage | undefined,
): Field {
  if (message !== undefined) return { type: wire.bytes, isList: false, fields: fieldsOf(message) }
  const type = kind === 'enum' || scalar === undefined ? wire.varint : wireTypeOf(scalar)
  return { type, isList: false, fields: null }
}

function wireTypeOf(scalar: ScalarType): number {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return wire.bytes
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return wire.fixed64
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return wire.fixed32
    default:
      return wire.varint
  }
}

/** Result of {@link protobufBodyFault} for bytes that are not valid protobuf fields. */
export const MALFORMED_BODY_FAULT = 'it is malformed'

class Malformed extends Error {}

/** Scans the fields of a body. */
class Scan {
  readonly #bytes: Uint8Array
  at = 0
  elements = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /**
   * Counts one field including its content.
   * @throws {Malformed}
   */
  field(fields: Fields, end: number, elementsMax: number, depth: number): void {
    const tag = this.#varint(end)
    this.elements += 1
    const type = tag & 7
    const field = fields.byNumber.get(tag >>> 3)
    const isPacked = field?.isList === true && type === wire.bytes
    // If the wire type is wrong, the decoder would read other fields than the scan counts.
    if (field !== undefined && field.type !== type && !isPacked) throw new Malformed()
    if (type === wire.varint) this.#varint(end)
    else if (type === wire.fixed64) this.#skip(8, end)
    else if (type === wire.fixed32) this.#skip(4, end)
    else if (type !== wire.bytes) {
      // Groups are rejected: the protocol does not use them, and the decoder would recurse for each
      // group.
      throw new Malformed()
    } else {
      const length = this.#varint(end)
      if (isPacked) this.elements += length
      const within = field?.fields ?? null
      if (within === null) this.#skip(length, end)
      else this.#message(within, { length, end }, elementsMax, depth)
    }
  }

  #message(
    fields: Fields,
    { length, end }: { readonly length: number; readonly end: number },
    elementsMax: number,
    depth: number,
  ): void {
    if (length > end - this.at || depth >= DEPTH_MAX) throw new Malformed()
    const inner = this.at + length
    this.elements += MESSAGE_ELEMENTS
    const least = this.elements + fields.membersMade
    while (this.at < inner && this.elements <= elementsMax) {
      this.field(fields, inner, elementsMax, depth + 1)
    }
    // An empty message counts like a full one: it takes as long to decode, because the decoder
    // creates all its fields.
    this.elements = Math.max(this.elements, least)
  }

  /** Reads at most 35 bits and skips higher bits, which no valid tag or length has. */
  #varint(end: number): number {
    const bytes = this.#bytes
    let value = 0
    for (let count = 0; count < VARINT_BYTES_MAX && this.at < end; count += 1) {
      const byte = bytes[this.at] ?? 0
      this.at += 1
      if (count < 5) value += (byte & 0x7f) * 2 ** (7 * count)
      if (byte < 0x80) return value
    }
    throw new Malformed()
  }

  #skip(length: number, end: number): void {
    if (length > end - this.at) throw new Malformed()
    this.at += length
  }
}

/** Why the body must not be decoded; null if it is within the limits and its tags are valid. */
export function protobufBodyFault(
  schema: DescMessage,
  body: Uint8Array,
  elementsMax: number,
  fieldElementsMax: number = FIELD_ELEMENTS_MAX,
): string | null {
  const fields = fieldsOf(schema)
  const scan = new Scan(body)
  try {
    while (scan.at < body.length) {
      const before = scan.elements
      scan.field(fields, body.length, Math.min(elementsMax, before + fieldElementsMax), 0)
      // @guard heavy-frames-of-a-router--elements
      if (scan.elements > elementsMax) return `more than ${elementsMax} elements`
      // @guard heavy-frames-of-a-router--field
      if (scan.elements > before + fieldElementsMax) {
        return `more than ${fieldElementsMax} elements in one field`
      }
    }
    return null
  } catch (error) {
    if (error instanceof Malformed) return MALFORMED_BODY_FAULT
    throw error
  }
}

/**
 * Decodes a body that passed {@link protobufBodyFault}. A step decodes whole fields with several
 * hundred elements together, or more if its last field is larger.
 * @throws {Error} when the body does not match the schema.
 */
export function* decodeIncrementally<D extends DescMessage>(
  schema: D,
  body: Uint8Array,
): Generator<void, MessageShape<D>> {
  const message = create(schema)
  const fields = fieldsOf(schema)
  const scan = new Scan(body)
  while (scan.at < body.length) {
    const [from, until] = [scan.at, scan.elements + STEP_ELEMENTS]
    while (scan.at < body.length && scan.elements < until) {
      scan.field(fields, body.length, Infinity, 0)
    }
    const piece = body.subarray(from, scan.at)
    // Skips unknown fields: they belong to a later version and are not needed here.
    mergeFromBinary(schema, message, piece, { readUnknownFields: false })
    if (scan.at < body.length) yield
  }
  return message
}
