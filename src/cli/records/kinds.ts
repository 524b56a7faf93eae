import { circuitSchema, linkSchema, linkPatchSchema } from '../../api/fabric/fabric-schema.ts'
import { controllerSchema } from '../../api/schemas/about.ts'
import { FABRIC_API_PATH, MANAGEMENT_API_PATH } from '../../client/cluster-client.ts'
import { nearestWord } from '../../config/engine/nearest-word.ts'
import { CommandFailure, EXIT_USAGE } from '../../controller/command-failure.ts'
import { type Entity, toKebabCase, type OperationShape } from '../../entities/define-entity.ts'
import { entities, entitiesByName } from '../../entities/registry.ts'
import {
  kindFields,
  type KindField,
  type NestedReference,
  nestedReferences,
  readOnlyFields,
  schemaProperties,
} from './fields.ts'

export type RecordOperation = Exclude<OperationShape, 'replace'>

/** A kind of record in the management or fabric API, with its names on the command line. */
export interface RecordKind {
  /** Name of the descriptor, such as `servicePolicy`. */
  readonly id: string
  /** Name on the command line, such as `service-policy`. */
  readonly name: string
  /** Base path of the API that contains the kind. */
  readonly api: typeof MANAGEMENT_API_PATH | typeof FABRIC_API_PATH
  /**
   * True: each controller has its own records, so a list combines the records of all controllers.
   */
  readonly isOfEachController: boolean
  /** Names of the table columns; null: the first fields that fit into a cell. */
  readonly columns: readonly string[] | null
  /** Plural, such as `service-policies`; also the last part of the kind's path. */
  readonly plural: string
  /** Abbreviation, such as `sp`; null for a kind whose name is one word. */
  readonly short: string | null
  /** Operations that the kind has, each with the permission that it needs. */
  readonly shapes: Readonly<Partial<Record<RecordOperation, string>>>
  readonly fields: readonly KindField[]
  readonly nested: readonly NestedReference[]
  /** True if records have names, so that users can refer to a record without its ID. */
  readonly hasName: boolean
  /** Field of the create body that becomes the id; null: the controller generates the id. */
  readonly idFrom: string | null
}

type Shapes = RecordKind['shapes']

const ops: Shapes = { list: 'ops.read', detail: 'ops.read', delete: 'ops.delete' }

/**
 * Operations that do not follow from a descriptor; a test in test/cli/records compares them with
 * the API.
 */
const handWritten: Readonly<Record<string, Shapes>> = {
  apiSession: ops,
  session: ops,
  controllerSetting: {
    patch: 'controller-setting.update',
    delete: 'controller-setting.delete',
  },
}

/** Columns for kinds whose first fields are less useful than their state. */
const columnsOfKinds: Readonly<Record<string, readonly string[]>> = {
  edgeRouter: [
    'name',
    'id',
    'isOnline',
    'isVerified',
    'roleAttributes',
    'cost',
    'disabled',
    'offlineSince',
  ],
  router: ['name', 'id', 'isOnline', 'isVerified', 'cost', 'disabled', 'offlineSince'],
  transitRouter: ['name', 'id', 'isOnline', 'isVerified', 'cost', 'disabled', 'offlineSince'],
}

const managed = { api: MANAGEMENT_API_PATH, isOfEachController: false, columns: null } as const

/** Last part of the path of updates and deletions, for kinds whose reads have another path. */
const writtenBelow: Readonly<Record<string, string>> = { controllerSetting: '/effective' }

let made: readonly RecordKind[] | null = null

/** Every kind of record in the management and fabric API, sorted by name. */
export function allKinds(): readonly RecordKind[] {
  made ??= [...entities.flatMap(kindOf), controllerKind(), ...liveKinds()].sort((a, b) =>
    a.name < b.name ? -1 : 1,
  )
  return made
}

function kindOf(entity: Entity): RecordKind[] {
  const { replace: _put, ...declared } = entity.operations.management ?? {}
  const shapes: Shapes = { ...declared, ...handWritten[entity.name] }
  if (Object.keys(shapes).length === 0) return []
  const name = toKebabCase(entity.name)
  return [
    {
      id: entity.name,
      name,
      ...managed,
      columns: columnsOfKinds[entity.name] ?? null,
      plural: entity.collection,
      short: initials(name),
      shapes,
      fields: kindFields(entity),
      nested: nestedReferences(entity),
      hasName: Object.hasOwn(entity.fields, 'name'),
      idFrom: entity.idFrom,
    },
  ]
}

/** The kind for members of the cluster, which are not replicated records. */
function controllerKind(): RecordKind {
  return {
    id: 'controller',
    name: 'controller',
    ...managed,
    plural: 'controllers',
    short: null,
    shapes: { list: 'controllers.read' },
    fields: readOnlyFields(controllerSchema.schema),
    nested: [],
    hasName: true,
    idFrom: null,
  }
}

/** Kinds of the fabric API that show live data instead of stored records. */
function liveKinds(): RecordKind[] {
  const common = {
    ...managed,
    api: FABRIC_API_PATH,
    isOfEachController: true,
    short: null,
    nested: [],
    hasName: false,
    idFrom: null,
  } as const
  const settable = Object.keys(schemaProperties(linkPatchSchema.schema))
  const linkFields = readOnlyFields(linkSchema.schema).map((field): KindField =>
    settable.includes(field.name) ? { ...field, settable: 'always' } : field,
  )
  return [
    {
      ...common,
      id: 'link',
      name: 'link',
      plural: 'links',
      columns: ['id', 'sourceRouter', 'destRouter', 'protocol', 'state', 'down', 'cost'],
      shapes: { ...ops, patch: 'ops.update' },
      fields: linkFields,
    },
    {
      ...common,
      id: 'circuit',
      name: 'circuit',
      plural: 'circuits',
      columns: ['id', 'service', 'clientId', 'path', 'createdAt'],
      shapes: ops,
      fields: readOnlyFields(circuitSchema.schema),
    },
  ]
}

function initials(name: string): string | null {
  const words = name.split('-')
  return words.length === 1 ? null : words.map((word) => word[0] ?? '').join('')
}

/** @throws {CommandFailure} exit 2; the message suggests a kind with a similar name, if any. */
export function findKind(word: string): RecordKind {
  const folded = fold(word)
  const found = allKinds().find((kind) => kindSynonyms(kind).some((one) => fold(one) === folded))
  if (found !== undefined) return found
  const near = nearestWord(word, allKinds().flatMap(kindSynonyms))
  const hint = near === null ? 'flotilla kinds lists all' : `did you mean ${near}?`
  throw new CommandFailure(EXIT_USAGE, `unknown kind ${JSON.stringify(word)}; ${hint}`)
}

/**
 * The kind with this descriptor name.
 * @throws when the API does not serve this kind, which means that the reference is a bug.
 */
export function kindById(id: string): RecordKind {
  const found = allKinds().find((kind) => kind.id === id)
  if (found === undefined) throw new Error(`the management API serves ${id}`)
  return found
}

/** All names of a kind: singular, plural and short name. */
export function kindSynonyms({ name, plural, short }: RecordKind): string[] {
  return [name, plural, ...(short === null ? [] : [short])]
}

function fold(word: string): string {
  return word.replaceAll('-', '').toLowerCase()
}

/** Path of one record for this shape of operation. */
export function recordPath(
  kind: RecordKind,
  id: string,
  shape: 'detail' | 'patch' | 'delete',
): string {
  const below = shape === 'detail' ? '' : (writtenBelow[kind.id] ?? '')
  return `/${kind.plural}/${encodeURIComponent(id)}${below}`
}

/** @throws {CommandFailure} exit 2 when the API has no such operation. */
export function requireRecordOperation(kind: RecordKind, shape: RecordOperation): void {
  if (kind.shapes[shape] !== undefined) return
  const verbs = {
    list: 'listed',
    create: 'created',
    detail: 'shown',
    patch: 'updated',
    delete: 'deleted',
  }
  throw new CommandFailure(EXIT_USAGE, `${kindNameInWords(kind.plural)} cannot be ${verbs[shape]}`)
}

/** `service-policy` → `service policy`. */
export function kindNameInWords(name: string): string {
  return name.replaceAll('-', ' ')
}

/** @throws {CommandFailure} exit 2; the message suggests a field with a similar name, if any. */
export function findField(kind: RecordKind, word: string): KindField {
  const found =
    kind.fields.find(({ name }) => name === word) ??
    kind.fields.find(({ alias, settable }) => alias === word && settable !== 'never') ??
    kind.fields.find(({ name, alias }) =>
      [name, alias].some((one) => one !== null && fold(one) === fold(word)),
    )
  if (found !== undefined) return found
  throw new CommandFailure(EXIT_USAGE, unknownFieldMessage(kind, word))
}

/** The error message for a field that the kind does not have. */
export function unknownFieldMessage(kind: RecordKind, word: string): string {
  const names = kind.fields.flatMap(({ name, alias }) => (alias === null ? [name] : [name, alias]))
  const near = nearestWord(word, names)
  const hint =
    near === null ? `flotilla explain ${kind.name} lists its fields` : `did you mean ${near}?`
  return `${withArticle(kindNameInWords(kind.name))} has no field ${JSON.stringify(word)}; ${hint}`
}

export function withArticle(words: string): string {
  return `${/^[aeio]/.test(words) ? 'an' : 'a'} ${words}`
}

/** The descriptor of a kind; undefined for a kind that has none. */
export function entityForKind(kind: RecordKind): Entity | undefined {
  return entitiesByName.get(kind.id)
}
