import { nearestWord } from '../../config/engine/nearest-word.ts'
import type { YamlTree } from '../../config/engine/yaml-tree.ts'
import { isObject } from '../../entities/check-fields.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { treeToJson } from '../records/body-members.ts'
import { readMemberAt, setMemberAt } from '../records/rows.ts'
import { disabledFields, readDisabledFields } from './disabled-state.ts'
import {
  identityExtraFault,
  type NetworkFileObject,
  type NetworkFile,
  NetworkFileReader,
} from './network-file.ts'
import { createSchemaChecks } from './file-checks.ts'
import { UnimportedFields } from './unimported-fields.ts'
import { type LiveNetwork, seededConfigTypeFields } from './live-network.ts'
import { fileFieldName, networkFileFields } from './network-file-fields.ts'
import { allSections, identityExtraFields, type NetworkSection } from './sections.ts'

/** Contents of an export from OpenZiti, and notes about what an import omits. */
interface OpenZitiExport extends NetworkFile {
  /** Sentences for the user who imports the file. */
  readonly notes: readonly string[]
  /**
   * Number of service policies that may have had posture checks: an OpenZiti export does not
   * contain this reference.
   */
  readonly policiesInDoubt: number
}

/** Sections that have another name in the OpenZiti export. */
const otherNames: Readonly<Record<string, string>> = { certificateAuthorities: 'cas' }

function nameInExport({ name }: NetworkSection): string {
  return Object.entries(otherNames).find(([, ours]) => ours === name)?.[0] ?? name
}

const sectionNames = [
  'certificateAuthorities',
  'identities',
  'edgeRouters',
  'services',
  'configs',
  'configTypes',
  'servicePolicies',
  'edgeRouterPolicies',
  'serviceEdgeRouterPolicies',
  'externalJwtSigners',
  'authPolicies',
  'postureChecks',
]

/** Reads an export of the OpenZiti CLI (`ziti ops export`), JSON or YAML. Never throws. */
export function parseOpenZitiExport(tree: YamlTree): OpenZitiExport {
  const reader = new OpenZitiExportReader()
  reader.readTop(tree)
  return reader.export()
}

class OpenZitiExportReader {
  readonly #reader = new NetworkFileReader(createSchemaChecks())
  readonly #lost = new UnimportedFields()
  readonly #left = new Map<string, number>()
  #hasPostureChecks = false
  #faults = 0
  #policies = 0

  export(): OpenZitiExport {
    return {
      ...this.#reader.file(),
      notes: this.#notes(),
      policiesInDoubt: this.#hasPostureChecks ? this.#policies : 0,
    }
  }

  readTop(tree: YamlTree): void {
    if (tree.kind !== 'map') {
      this.#reader.fault(tree.line, 'expected an export with sections such as services')
      return
    }
    for (const { key, line, value } of tree.entries) {
      const name = sectionNames.includes(key) ? (otherNames[key] ?? key) : null
      const section = allSections().find((one) => one.name === name)
      if (section === undefined) this.#unknownSection(key, line)
      else if (value.kind === 'list') for (const item of value.items) this.#readItem(section, item)
      else if (value.kind !== 'scalar' || value.value !== null) {
        this.#reader.fault(line, `${key}: expected a list`)
      }
    }
  }

  #unknownSection(key: string, line: number): void {
    const near = nearestWord(key, sectionNames)
    const hint =
      near === null ? `known sections: ${sectionNames.join(', ')}` : `did you mean ${near}?`
    this.#reader.fault(line, `unknown section ${JSON.stringify(key)}; ${hint}`)
  }

  #readItem(section: NetworkSection, tree: YamlTree): void {
    const item = treeToJson(tree)
    if (tree.kind !== 'map' || !isObject(item)) {
      this.#reader.fault(tree.line, `expected the fields of an object`)
      return
    }
    this.#count(section)
    const left = leftOut(section, item)
    if (left !== null) {
      this.#left.set(left, (this.#left.get(left) ?? 0) + 1)
      return
    }
    const lines = new Map(tree.entries.map(({ key, line }) => [fileKey(section, key), line]))
    const before = this.#faults
    for (const { key, line } of tree.entries) this.#judgeExtra(section, item, key, line)
    // An item with a fault is not read, because a disabled identity could be read as enabled.
    if (this.#faults > before) return
    this.#reader.take(section, this.#fieldsOf(section, item), tree.line, lines)
  }

  #count({ kind }: NetworkSection): void {
    if (kind.id === 'postureCheck') this.#hasPostureChecks = true
    if (kind.id === 'servicePolicy') this.#policies += 1
  }

  /**
   * Checks a field of an identity that no schema describes, such as one that disables the identity.
   */
  #judgeExtra({ kind }: NetworkSection, item: JsonObject, key: string, line: number): void {
    const extra =
      kind.id === 'identity' ? identityExtraFields.find((one) => one === key) : undefined
    const value = extra === undefined ? null : (item[extra] ?? null)
    const problem = extra === undefined || value === null ? null : identityExtraFault(extra, value)
    // @guard import-that-loses-rights--value
    if (problem === null) return
    this.#faults += 1
    this.#reader.fault(line, `identity ${String(item['name'])}: ${problem}`)
  }

  #fieldsOf(section: NetworkSection, item: JsonObject): JsonObject {
    const { kind } = section
    const fields: Record<string, Json> = {}
    for (const [key, value] of Object.entries(item)) {
      if (value === null) continue
      const field = networkFileFields(kind).find(({ name, alias }) => name === key || alias === key)
      if (field !== undefined) {
        const isNamed = field.reference?.shape === 'one' || field.reference?.shape === 'many'
        fields[fileFieldName(field)] = isNamed ? withoutSign(value) : value
      } else if (key !== 'typeId' || kind.id !== 'identity') {
        this.#lost.add(section, nameInExport(section), item, key)
      }
    }
    const whole = kind.nested.reduce<JsonObject>((object, { path }) => {
      const value = readMemberAt(object, path)
      return value === undefined || value === null
        ? object
        : setMemberAt(object, path, withoutSign(value))
    }, fields)
    return kind.id === 'identity' ? identityFields(whole, item) : whole
  }

  #notes(): string[] {
    const left = [...this.#left].map(([what, count]) => `skipped ${count} ${what}`)
    return [...left, ...this.#lost.notes()]
  }
}

/** Removes the leading `@` of references in the export. */
function withoutSign(value: Json): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map(withoutSign)
  return typeof value === 'string' && value.startsWith('@') ? value.slice(1) : value
}

function identityFields(fields: JsonObject, item: JsonObject): JsonObject {
  const { typeId = 'Default' } = item
  return {
    ...fields,
    ...(typeId === 'Default' ? {} : { type: typeId }),
    ...readDisabledFields(item),
  }
}

function fileKey({ kind }: NetworkSection, key: string): string {
  const field = networkFileFields(kind).find(({ name, alias }) => name === key || alias === key)
  return field === undefined ? key : fileFieldName(field)
}

/**
 * Description of an object that an import omits, for the note "skipped 2 …"; null if the import
 * contains the object.
 */
function leftOut(section: NetworkSection, item: JsonObject): string | null {
  const { name, isDefaultAdmin, semantic, identityRoles, edgeRouterRoles } = item
  switch (section.kind.id) {
    case 'identity':
      return isDefaultAdmin === true ? 'default administrator, as this network has its own' : null
    case 'configType':
      return seededConfigTypeFields(section, { name: name ?? '' }) === null
        ? null
        : 'built-in config types'
    case 'edgeRouterPolicy': {
      const isOwn =
        /^edge-router-.+-system$/.test(String(name)) &&
        semantic === 'AnyOf' &&
        JSON.stringify(identityRoles) === JSON.stringify(edgeRouterRoles)
      return isOwn ? 'policies that routers create themselves' : null
    }
    default:
      return null
  }
}

/**
 * Completes objects of an OpenZiti export: fields that the export does not contain keep their
 * values in this network.
 */
export function fillFromCurrentNetwork(
  objects: readonly NetworkFileObject[],
  live: LiveNetwork,
): NetworkFileObject[] {
  const byKey = new Map(live.objects.map((one) => [`${one.section.name} ${one.key}`, one]))
  return objects.map((object) => {
    const known = byKey.get(`${object.section.name} ${object.key}`)
    if (known === undefined) return object
    const isSet = (name: string): boolean => object.lines.has(name)
    const isDisabledSet = disabledFields.some(isSet)
    const unset = Object.entries(known.fields).filter(
      ([name]) => !isSet(name) && !(isDisabledSet && disabledFields.some((one) => one === name)),
    )
    return { ...object, fields: { ...Object.fromEntries(unset), ...object.fields } }
  })
}
