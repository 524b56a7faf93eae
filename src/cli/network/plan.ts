import { nearestWord } from '../../config/engine/nearest-word.ts'
import { isSameJson, type Json, type JsonObject } from '../../lib/text/canonical-json.ts'
import { kindById, kindNameInWords } from '../records/kinds.ts'
import { hasPolicyExpired, isOmittedExpiry } from './access-expiry.ts'
import { isAboutSameTime } from './disabled-state.ts'
import type { FileFault, NetworkFileObject } from './network-file.ts'
import {
  isImpliedRouterIdentity,
  type LiveNetwork,
  type LiveObject,
  seededConfigTypeFields,
  tableForKind,
} from './live-network.ts'
import { fileFieldName, networkFileFields, translateReferences } from './network-file-fields.ts'
import type { NetworkObject } from './sections.ts'

/** One field whose value in the file differs from the value in the network. */
export interface FieldChange {
  readonly field: string
  /** null if the field has no value. */
  readonly from: Json
  readonly to: Json
}

export type NetworkStep =
  | { readonly verb: 'create'; readonly wanted: NetworkFileObject }
  /** The router creates this identity, so its differences are known only when the router exists. */
  | { readonly verb: 'adopt'; readonly wanted: NetworkFileObject }
  | {
      readonly verb: 'update'
      readonly wanted: NetworkFileObject
      readonly live: LiveObject
      readonly changes: readonly FieldChange[]
    }
  | { readonly verb: 'delete'; readonly live: LiveObject }

type Writing = Exclude<NetworkStep, { readonly verb: 'delete' }>

interface Plan {
  /** Steps in the order of their execution. */
  readonly steps: readonly NetworkStep[]
  readonly faults: readonly FileFault[]
}

/**
 * Plans the steps that make the network match a file.
 * @param isPruned true: deletes objects that the file does not contain.
 */
export function planNetworkSteps(
  objects: readonly NetworkFileObject[],
  live: LiveNetwork,
  isPruned: boolean,
): Plan {
  const all = isPruned ? [...objects, ...unsaid(objects, live)] : objects
  return new Planner(all, live).plan(isPruned)
}

/**
 * Built-in config types that the file does not contain. They are added with their original fields,
 * so that pruning restores these fields: a file omits a built-in config type that is unchanged.
 */
function unsaid(objects: readonly NetworkFileObject[], live: LiveNetwork): NetworkFileObject[] {
  const named = new Set(objects.map(keyIn))
  return live.objects.flatMap((one): NetworkFileObject[] => {
    const seed = named.has(keyIn(one)) ? null : seededConfigTypeFields(one.section, one.fields)
    if (seed === null) return []
    const { section, key, label } = one
    return [{ section, key, label, fields: seed, line: 1, lines: new Map() }]
  })
}

class Planner {
  readonly #objects: readonly NetworkFileObject[]
  readonly #live: LiveNetwork
  readonly #liveByKey: ReadonlyMap<string, LiveObject>
  readonly #fileByName = new Map<string, NetworkFileObject>()
  readonly #faults: FileFault[] = []

  constructor(objects: readonly NetworkFileObject[], live: LiveNetwork) {
    this.#objects = objects
    this.#live = live
    this.#liveByKey = new Map(live.objects.map((one) => [keyIn(one), one]))
    for (const object of objects) this.#take(object)
  }

  /** Adds an object. Its name must be unique among all kinds that share its table. */
  #take(object: NetworkFileObject): void {
    const { kind } = object.section
    if (!kind.hasName) return
    const key = nameKey(kind.id, String(object.fields['name']))
    const known = this.#fileByName.get(key)
    if (known === undefined) this.#fileByName.set(key, object)
    else {
      const problem = `conflicts with ${known.label} on line ${known.line}`
      this.#fault(object, 'name', problem)
    }
  }

  plan(isPruned: boolean): Plan {
    const steps = this.#objects.flatMap((object) => this.#stepFor(object))
    for (const object of this.#objects) this.#judgeReferences(object)
    this.#judgeServiceConfigs()
    const ordered = this.#faults.length === 0 ? this.#ordered(steps) : []
    const pruned = isPruned ? this.#pruned() : []
    const faults = [...this.#faults].sort((a, b) => a.line - b.line)
    return { steps: faults.length > 0 ? [] : [...ordered, ...pruned], faults }
  }

  #stepFor(wanted: NetworkFileObject): Writing[] {
    const live = this.#liveByKey.get(keyIn(wanted))
    if (live !== undefined) {
      const changes = changesOf(wanted.section.kind.id, live.fields, wanted.fields)
      this.#judgeFixed(wanted, changes)
      return changes.length === 0 ? [] : [{ verb: 'update', wanted, live, changes }]
    }
    if (hasPolicyExpired(wanted.section.kind.id, wanted.fields)) return []
    if (wanted.fields['isDefaultAdmin'] === true) {
      this.#fault(wanted, 'isDefaultAdmin', 'this network has no default administrator')
    }
    if (wanted.fields['type'] !== 'Router') return [{ verb: 'create', wanted }]
    if (!this.#isRouterIdentity(String(wanted.fields['name']))) {
      this.#fault(
        wanted,
        'type',
        'no edge router of that name has isTunnelerEnabled: true, which would make it',
      )
    }
    return isImpliedRouterIdentity(wanted.fields) ? [] : [{ verb: 'adopt', wanted }]
  }

  /** Whether an edge router in the file creates an identity of this name. */
  #isRouterIdentity(name: string): boolean {
    const router = this.#fileByName.get(nameKey('edgeRouter', name))
    return router?.fields['isTunnelerEnabled'] === true
  }

  /** Reports a fault if a field differs that can only be set at creation. */
  #judgeFixed(wanted: NetworkFileObject, changes: readonly FieldChange[]): void {
    for (const field of networkFileFields(wanted.section.kind)) {
      const change = changes.find((one) => one.field === fileFieldName(field))
      if (field.settable !== 'create' || change === undefined) continue
      const held = change.from === null ? 'unset' : JSON.stringify(change.from)
      this.#fault(
        wanted,
        change.field,
        `${change.field} is ${held.slice(0, 60)} and cannot be changed; delete the record to create another`,
      )
    }
    const role = changes.find(({ field }) => field === 'type')
    if (wanted.section.kind.id !== 'identity' || role === undefined) return
    if (role.from !== 'Router' && role.to !== 'Router') return
    this.#fault(wanted, 'type', 'identities of the type Router are created by routers only')
  }

  #judgeReferences(object: NetworkFileObject): void {
    translateReferences(object.section.kind, object.fields, (to, word, path) => {
      if (!this.#isThere(to, word)) this.#unknown(object, to, word, path)
      return word
    })
  }

  #isThere(to: string, name: string): boolean {
    return (
      this.#fileByName.has(nameKey(to, name)) ||
      this.#live.idOf(to, name) !== undefined ||
      (to === 'identity' && this.#isRouterIdentity(name))
    )
  }

  #unknown(object: NetworkFileObject, to: string, word: string, path: string): void {
    const kind = kindById(to)
    const table = tableForKind(to)
    const inFile = [...this.#fileByName.keys()]
      .filter((key) => key.startsWith(`${table} `))
      .map((key) => key.slice(table.length + 1))
    const near = nearestWord(word, [...inFile, ...this.#live.namesOf(to)])
    const hint =
      near === null ? 'it is neither in the file nor in the network' : `did you mean ${near}?`
    this.#fault(object, path, `no ${kindNameInWords(kind.name)} ${JSON.stringify(word)}; ${hint}`)
  }

  /**
   * Reports a second config of the same type for one identity and service, because the network
   * would keep only one of the two.
   */
  #judgeServiceConfigs(): void {
    const seen = new Map<string, NetworkFileObject>()
    for (const object of this.#objects) {
      if (object.section.kind.id !== 'serviceConfig') continue
      const { identity, service, config } = object.fields
      const type = this.#configTypeOf(String(config))
      const key = JSON.stringify([identity, service, type])
      const known = seen.get(key)
      if (known === undefined) seen.set(key, object)
      else
        this.#fault(object, 'config', `line ${known.line} gives another config of the type ${type}`)
    }
  }

  #configTypeOf(config: string): string {
    const inFile = this.#fileByName.get(nameKey('config', config))
    const live = this.#live.objects.find(
      ({ section, fields }) => section.kind.id === 'config' && fields['name'] === config,
    )
    return String((inFile ?? live)?.fields['configType'])
  }

  /**
   * Orders steps so that a referenced object comes before the objects that reference it; a cycle is
   * a fault.
   */
  #ordered(steps: readonly Writing[]): readonly NetworkStep[] {
    const made = new Map<string, Writing>()
    const routers = new Map<string, Writing>()
    for (const step of steps) {
      const { section, fields } = step.wanted
      const key = nameKey(section.kind.id, String(fields['name']))
      if (step.verb !== 'update' && section.kind.hasName) made.set(key, step)
      // The step may also create the identity of the router.
      if (section.kind.id === 'edgeRouter')
        routers.set(nameKey('identity', String(fields['name'])), step)
    }
    const needed = (step: Writing): readonly Writing[] => [
      ...namesIn(step.wanted).flatMap((key) => made.get(key) ?? routers.get(key) ?? []),
      ...(step.verb === 'adopt'
        ? [routers.get(nameKey('identity', String(step.wanted.fields['name'])))]
        : []
      ).flatMap((one) => one ?? []),
    ]
    return inOrder(steps, needed, (circle) => this.#circle(circle))
  }

  #circle(steps: readonly Writing[]): void {
    const labels = steps.map(({ wanted }) => wanted.label)
    for (const [at, { wanted }] of steps.entries()) {
      const next = labels[(at + 1) % labels.length] ?? ''
      this.#fault(
        wanted,
        '',
        `references ${next} in a cycle of ${labels.join(', ')}; omit one of the references, apply, add it again and apply again`,
      )
    }
  }

  /** Orders deletions so that an object is deleted after the objects that reference it. */
  #pruned(): readonly NetworkStep[] {
    const wanted = new Set(this.#objects.map(keyIn))
    const steps = this.#live.objects
      .filter((one) => !one.isKept && !wanted.has(keyIn(one)))
      .reverse()
      .map((live) => ({ verb: 'delete', live }) as const)
    const holders = new Map<string, (typeof steps)[number][]>()
    for (const step of steps) {
      for (const key of namesIn(step.live)) holders.set(key, [...(holders.get(key) ?? []), step])
    }
    const needed = ({ live }: (typeof steps)[number]): (typeof steps)[number][] =>
      holders.get(nameKey(live.section.kind.id, String(live.fields['name']))) ?? []
    // A cycle is not a fault here: the API will report which object is still referenced.
    return inOrder(steps, needed, () => undefined)
  }

  #fault({ line, lines, label }: NetworkFileObject, path: string, problem: string): void {
    const field = path.split('.')[0] ?? ''
    this.#faults.push({ line: lines.get(field) ?? line, problem: `${label}: ${problem}` })
  }
}

/**
 * Orders each step after the steps that it depends on; calls a function for steps that depend on
 * each other in a cycle.
 */
function inOrder<T>(
  steps: readonly T[],
  needed: (step: T) => readonly T[],
  onCircle: (steps: readonly T[]) => void,
): T[] {
  const state = new Map<T, 'open' | 'done'>()
  const ordered: T[] = []
  const path: T[] = []
  const visit = (step: T): void => {
    const known = state.get(step)
    if (known === 'open') onCircle(path.slice(path.indexOf(step)))
    if (known !== undefined) return
    state.set(step, 'open')
    path.push(step)
    for (const other of needed(step)) if (other !== step) visit(other)
    path.pop()
    state.set(step, 'done')
    ordered.push(step)
  }
  for (const step of steps) visit(step)
  return ordered
}

/** Keys of the objects to which an object refers. */
function namesIn({ section, fields }: NetworkObject): readonly string[] {
  const named: string[] = []
  translateReferences(section.kind, fields, (to, word) => {
    named.push(nameKey(to, word))
    return word
  })
  return named
}

function keyIn({
  section,
  key,
}: {
  readonly section: { readonly name: string }
  readonly key: string
}): string {
  return `${section.name} ${key}`
}

function nameKey(kind: string, name: string): string {
  return `${tableForKind(kind)} ${name}`
}

/** The fields in which two objects differ. */
function changesOf(kind: string, from: JsonObject, to: JsonObject): readonly FieldChange[] {
  const names = [...new Set([...Object.keys(from), ...Object.keys(to)])]
  return names.flatMap((field) => {
    if (isOmittedExpiry(kind, field, to)) return []
    const [before = null, after = null] = [from[field], to[field]]
    const isSame =
      isSameJson(before, after) || (field === 'disabledUntil' && isAboutSameTime(before, after))
    return isSame ? [] : [{ field, from: before, to: after }]
  })
}
