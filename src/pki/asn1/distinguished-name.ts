import {
  DerError,
  derTag,
  type DerValue,
  type Oid,
  readDerOid,
  encodeTagged,
  readInnerDerValues,
} from './der.ts'
import { attributeNames, attributeOids } from './object-identifiers.ts'

/**
 * Maximum relative names in one distinguished name. `ATTRIBUTES_MAX` limits the attributes of each
 * relative name.
 */
const RELATIVE_NAMES_MAX = 64
const ATTRIBUTES_MAX = 16

interface NameAttribute {
  readonly type: Oid
  /** The value as text; null when its type is not a string type. */
  readonly text: string | null
  /** The attribute's value in DER. */
  readonly der: Buffer
}

type RelativeName = readonly NameAttribute[]

/** A distinguished name (RFC 5280, 4.1.2.4), the most general relative name first. */
export interface DistinguishedName {
  readonly der: Buffer
  readonly relativeNames: readonly RelativeName[]
}

/** @throws {DerError} */
export function readDistinguishedName(value: DerValue): DistinguishedName {
  if (value.tag !== derTag.sequence) throw new DerError('a name is a sequence')
  const relativeNames: RelativeName[] = []
  for (const set of readInnerDerValues(value, RELATIVE_NAMES_MAX)) {
    if (set.tag !== derTag.set) throw new DerError('a relative name is a set')
    const attributes = readInnerDerValues(set, ATTRIBUTES_MAX).map(readAttribute)
    if (attributes.length === 0) throw new DerError('a relative name is empty')
    relativeNames.push(attributes)
  }
  return { der: value.whole, relativeNames }
}

function readAttribute(value: DerValue): NameAttribute {
  const [type, one, ...others] = readInnerDerValues(value, 2)
  if (type?.tag !== derTag.objectIdentifier || one === undefined || others.length > 0) {
    throw new DerError('an attribute of a name is a type and a value')
  }
  return { type: readDerOid(type), text: textOf(one), der: one.whole }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * @returns null for a value that is not a string type.
 * @throws {DerError} for an invalid string.
 */
function textOf({ tag, contents }: DerValue): string | null {
  switch (tag) {
    case derTag.utf8String:
      return utf8Text(contents)
    case derTag.printableString:
    case derTag.numericString:
    case derTag.ia5String:
    case derTag.visibleString:
    case derTag.teletexString:
      return contents.toString('latin1')
    case derTag.bmpString:
      return wideText(contents, 2)
    case derTag.universalString:
      return wideText(contents, 4)
    default:
      return null
  }
}

function utf8Text(contents: Buffer): string {
  try {
    return utf8.decode(contents)
  } catch {
    throw new DerError('a text that is no UTF-8')
  }
}

function wideText(contents: Buffer, bytesEach: number): string {
  let text = ''
  if (contents.length % bytesEach !== 0) throw new DerError('a text that is cut off')
  for (let at = 0; at < contents.length; at += bytesEach) {
    const point = contents.readUIntBE(at, bytesEach)
    if (point > 0x10_ffff) throw new DerError('a text with an invalid character')
    text += String.fromCodePoint(point)
  }
  return text
}

/** The string values of all attributes with this type, in the order of the name. */
export function attributeTexts(name: DistinguishedName, type: Oid): string[] {
  const texts: string[] = []
  for (const relative of name.relativeNames) {
    for (const attribute of relative) {
      if (attribute.type === type && attribute.text !== null) texts.push(attribute.text)
    }
  }
  return texts
}

/** A name that contains only a common name. */
export function distinguishedNameFromCommonName(text: string): DistinguishedName {
  const type = attributeOids.commonName
  const value = encodeTagged(derTag.utf8String, Buffer.from(text, 'utf8'))
  const der = encodeTagged(derTag.sequence, [derTag.set, [derTag.sequence, type, value]])
  return { der, relativeNames: [[{ type, text, der: value }]] }
}

/**
 * Formats a name as in RFC 4514: `CN=a,O=b`, the most specific relative name first, always on one
 * line.
 */
export function formatDistinguishedName({ relativeNames }: DistinguishedName): string {
  return relativeNames
    .toReversed()
    .map((relative) => relative.map(formatAttribute).join('+'))
    .join(',')
}

function formatAttribute({ type, text, der }: NameAttribute): string {
  const name = attributeNames.get(type)
  if (name === undefined || text === null) {
    return `${name ?? dotted(type)}=#${der.toString('hex')}`
  }
  return `${name}=${escaped(text)}`
}

/**
 * Escapes a value (RFC 4514, 2.4). Control characters are escaped too, so that a name never breaks
 * a log line.
 */
function escaped(text: string): string {
  return text
    .replace(/[\\",+<>;]|^[ #]| $/g, (character) => `\\${character}`)
    .replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (character) =>
      Buffer.from(character).toString('hex').replace(/../g, '\\$&'),
    )
}

function dotted(type: Oid): string {
  const arcs: number[] = []
  let arc = 0
  for (const byte of Buffer.from(type, 'hex')) {
    arc = arc * 128 + (byte & 0x7f)
    if (byte >= 0x80) continue
    arcs.push(arc)
    arc = 0
  }
  const [first = 0, ...rest] = arcs
  const root = Math.min(2, Math.floor(first / 40))
  return [root, first - root * 40, ...rest].join('.')
}

/**
 * Whether `name` equals `above` or is below it (RFC 5280, 7.1: ignoring case and repeated spaces).
 */
export function isNameWithin(name: DistinguishedName, above: DistinguishedName): boolean {
  return (
    above.relativeNames.length <= name.relativeNames.length &&
    above.relativeNames.every((relative, at) => {
      const own = name.relativeNames[at]
      return own !== undefined && comparable(own) === comparable(relative)
    })
  )
}

function comparable(relative: RelativeName): string {
  return relative
    .map(({ type, text, der }) => `${type}=${text === null ? der.toString('hex') : folded(text)}`)
    .sort()
    .join('\n')
}

function folded(text: string): string {
  const words = text.normalize('NFKC').toLowerCase().split(/\s+/)
  return JSON.stringify(words.filter((word) => word !== '').join(' '))
}
