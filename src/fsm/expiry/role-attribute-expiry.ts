import type { Identity } from '../../entities/kinds/identity.ts'
import { fieldLimits } from '../../entities/fields.ts'
import type { FieldFault } from '../../lib/problems.ts'
import { isSameJson, type Json } from '../../lib/text/canonical-json.ts'
import { dateTimeMs } from '../../lib/text/date-time.ts'

/** Fields of an identity that this file keeps consistent with each other. */
type RoleAttributeFields = Pick<
  Identity,
  'roleAttributes' | 'roleAttributesExpireAt' | 'roleAttributeEndsAt'
>
type Written = Partial<Pick<Identity, 'roleAttributes' | 'roleAttributesExpireAt'>>
type Ends = ReadonlyMap<string, Json>

const field = 'roleAttributesExpireAt'

function endsIn(of: Written | undefined): Ends {
  return new Map(Object.entries(of?.roleAttributesExpireAt ?? {}))
}

/** UTC ms of an expiry time in its stored form; null for another value. */
function endMs(end: Json | undefined): number | null {
  if (typeof end !== 'string') return null
  const ms = dateTimeMs(end)
  return ms !== null && new Date(ms).toISOString() === end ? ms : null
}

/** The fault in the expiry times that a write sets; null: none. */
export function roleAttributeExpiryFault(
  before: Identity | undefined,
  after: Written,
  logTimeMs: number,
): FieldFault | null {
  const known = endsIn(before)
  const ends = endsIn(after)
  if (ends.size > fieldLimits.attributesMax) {
    return { field, reason: `${field} has more than ${fieldLimits.attributesMax} members` }
  }
  for (const [attribute, end] of ends) {
    if (end === null || known.get(attribute) === end) continue
    const ms = endMs(end)
    const at = { field: `${field}.${attribute.slice(0, 128)}`, value: end }
    if (ms === null) return { ...at, reason: 'the end of a role attribute must be a time in UTC' }
    if (ms <= logTimeMs) {
      return { ...at, reason: 'the end of a role attribute must be in the future' }
    }
    const isHeld = (after.roleAttributes ?? []).includes(attribute)
    if (isHeld || known.has(attribute)) continue
    return { ...at, reason: `${attribute} is not in roleAttributes` }
  }
  return null
}

/**
 * Role attributes and their expiry times after a write. Every expiry time belongs to an effective
 * attribute or to an expired attribute. A later expiry time makes an expired attribute effective
 * again, and only null removes an expiry time that has passed. An expired attribute stays removed
 * even if the write lists it, because clients that do not know expiry times write back the
 * attributes that they have read.
 */
export function roleAttributesAfterWrite(
  before: Identity | undefined,
  after: Identity,
  logTimeMs: number,
): RoleAttributeFields {
  const known = endsIn(before)
  const held = new Set(after.roleAttributes)
  const ends = new Map<string, Json>()
  const given = endsIn(after)
  const passed = [...known].filter(
    ([attribute, end]) => !given.has(attribute) && (endMs(end) ?? Infinity) <= logTimeMs,
  )
  for (const [attribute, end] of [...given, ...passed]) {
    const ms = endMs(end)
    if (ms === null) continue
    if (ms <= logTimeMs) {
      // @guard access-that-ended--attribute
      held.delete(attribute)
      ends.set(attribute, end)
    } else if (held.has(attribute) || known.get(attribute) !== end) {
      held.add(attribute)
      ends.set(attribute, end)
    }
  }
  return fieldsOf(held, ends)
}

/**
 * Role attributes at a log time: expired attributes are removed, and attributes whose expiry time
 * is in the future again, because log time was set back, are added. Null: nothing changes.
 */
export function roleAttributesAtLogTime(
  identity: Identity,
  logTimeMs: number,
): RoleAttributeFields | null {
  const ends = endsIn(identity)
  if (ends.size === 0) return null
  const held = new Set(identity.roleAttributes)
  for (const [attribute, end] of ends) {
    if ((endMs(end) ?? 0) <= logTimeMs) held.delete(attribute)
    else held.add(attribute)
  }
  const settled = fieldsOf(held, ends)
  return isSameRoleAttributes(identity, settled) ? null : settled
}

export function isSameRoleAttributes(a: RoleAttributeFields, b: RoleAttributeFields): boolean {
  return (
    isSameJson(a.roleAttributes, b.roleAttributes) &&
    isSameJson(a.roleAttributesExpireAt, b.roleAttributesExpireAt) &&
    a.roleAttributeEndsAt === b.roleAttributeEndsAt
  )
}

function fieldsOf(held: ReadonlySet<string>, ends: Ends): RoleAttributeFields {
  const pending = [...ends].flatMap(([name, end]) => (held.has(name) ? (endMs(end) ?? []) : []))
  const sorted = [...ends].sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    roleAttributes: [...held].sort(),
    roleAttributesExpireAt: Object.fromEntries(sorted) as Identity['roleAttributesExpireAt'],
    roleAttributeEndsAt: pending.length === 0 ? null : Math.min(...pending),
  }
}
