import { MANAGEMENT_API_PATH } from '../../client/cluster-client.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { findEntity } from '../../entities/registry.ts'
import { kindFields } from '../records/fields.ts'
import { type RecordKind, kindById, kindNameInWords } from '../records/kinds.ts'
import { disabledFields } from './disabled-state.ts'

export const networkFileLimits = {
  /** Maximum bytes of a network file or of standard input; a larger input is refused. */
  fileBytesMax: 64 * 1024 * 1024,
  /**
   * Maximum YAML values in a network file after its aliases are expanded; above that, the file
   * is refused.
   */
  yamlNodesMax: 2_000_000,
  /** Maximum nesting of YAML values in a network file; above that, the file is refused. */
  yamlDepthMax: 64,
  /** Maximum faults of a network file that are printed; further faults are only counted. */
  faultsMax: 100,
} as const

/** The version of the file format that this program writes. */
export const NETWORK_FILE_VERSION = 1

/** The records of one kind in a network file. */
export interface NetworkSection {
  /** Key of the section in the file, such as `servicePolicies`. */
  readonly name: string
  readonly kind: RecordKind
  /** Fields that identify an object within the section, with their names in the file. */
  readonly key: readonly string[]
}

const byName = ['name']

function section(id: string, key: readonly string[] = byName): NetworkSection {
  return { name: findEntity(id).plural, kind: kindById(id), key }
}

/**
 * Configs that replace a service's configs for one identity. The API has no separate kind of record
 * for them.
 */
const serviceConfigs: RecordKind = {
  id: 'serviceConfig',
  name: 'service-config',
  plural: 'service-configs',
  api: MANAGEMENT_API_PATH,
  isOfEachController: false,
  columns: null,
  short: null,
  shapes: {},
  fields: kindFields(findEntity('serviceConfig')).filter(({ name }) => name !== 'tags'),
  nested: [],
  hasName: false,
  idFrom: null,
}

let made: readonly NetworkSection[] | null = null

/**
 * Sections of a network file, in an order in which referenced objects come first. Credentials,
 * enrollments, sessions and revocations have no section, because they are secret or temporary.
 */
export function allSections(): readonly NetworkSection[] {
  made ??= [
    section('configType'),
    section('config'),
    section('externalJwtSigner'),
    section('authPolicy'),
    section('ca'),
    section('postureCheck'),
    section('edgeRouter'),
    section('transitRouter'),
    section('service'),
    section('identity'),
    { name: 'serviceConfigs', kind: serviceConfigs, key: ['identity', 'service', 'config'] },
    section('terminator', ['service', 'router', 'binding', 'address', 'identity']),
    section('edgeRouterPolicy'),
    section('serviceEdgeRouterPolicy'),
    section('servicePolicy'),
    section('controllerSetting', ['controllerId']),
  ]
  return made
}

/** Identity fields of a network file that the API does not accept in the body of an identity. */
export const identityExtraFields = ['isDefaultAdmin', ...disabledFields] as const

/** One object in a network: its fields as in the file, with references by name. */
export interface NetworkObject {
  readonly section: NetworkSection
  /** Key that is unique in the object's section. */
  readonly key: string
  /** Text for messages, such as `service web`. */
  readonly label: string
  readonly fields: JsonObject
}

/**
 * Key of the default administrator in every network, because its name may differ between networks.
 */
const DEFAULT_ADMIN = '(default administrator)'

/** Key that identifies an object within its section. */
export function objectKey({ key, kind }: NetworkSection, fields: JsonObject): string {
  if (kind.id === 'identity' && fields['isDefaultAdmin'] === true) return DEFAULT_ADMIN
  return key.map((name) => String(fields[name] ?? '')).join(' ')
}

export function objectLabel(section: NetworkSection, fields: JsonObject): string {
  const words = section.key.map((name) => fields[name]).filter((one) => one !== undefined)
  return `${kindNameInWords(section.kind.name)} ${words.map(String).join(' ')}`
}
