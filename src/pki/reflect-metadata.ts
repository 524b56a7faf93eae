/**
 * The part of the Reflect metadata proposal that @peculiar/x509's container (tsyringe) asks for: it refuses to load
 * without it. Must be imported before @peculiar/x509; `x509.ts` does both in that order. A full polyfill that is
 * already there is left alone.
 */
type Metadata = Map<unknown, unknown>

interface ReflectMetadata {
  defineMetadata(key: unknown, value: unknown, target: object, member?: PropertyKey): void
  getOwnMetadata(key: unknown, target: object, member?: PropertyKey): unknown
  getMetadata(key: unknown, target: object, member?: PropertyKey): unknown
  metadata(key: unknown, value: unknown): (target: object, member?: PropertyKey) => void
}

const stored = new WeakMap<object, Map<PropertyKey | undefined, Metadata>>()

const implementation: ReflectMetadata = {
  defineMetadata(key, value, target, member) {
    const members = stored.get(target) ?? new Map<PropertyKey | undefined, Metadata>()
    const entries = members.get(member) ?? new Map<unknown, unknown>()
    entries.set(key, value)
    members.set(member, entries)
    stored.set(target, members)
  },
  getOwnMetadata: (key, target, member) => stored.get(target)?.get(member)?.get(key),
  getMetadata(key, target, member) {
    for (let at: object | null = target; at !== null; at = Reflect.getPrototypeOf(at)) {
      const entries = stored.get(at)?.get(member)
      if (entries?.has(key) === true) return entries.get(key)
    }
    return undefined
  },
  metadata: (key, value) => (target, member) => {
    implementation.defineMetadata(key, value, target, member)
  },
}

if (!('getMetadata' in Reflect)) Object.assign(Reflect, implementation)
