import { create } from '@bufbuild/protobuf'

import {
  type ModelConfig,
  ModelConfigSchema,
  type ModelIdentity,
  ModelIdentitySchema,
  ModelPrecedence,
  type ModelService,
  ModelServiceSchema,
} from '../../proto/gen/router_pb.ts'
import { serviceLimits } from '../overlay/services/limits.ts'
import type { UsableServices } from '../overlay/services/usable-services.ts'
import { objectOrEmpty, readTextField, readTextListField } from './controller-api.ts'

type Fields = Readonly<Record<string, unknown>>

interface FollowedService {
  readonly service: ModelService
  readonly permissions: ReadonlySet<string>
  readonly configs: ReadonlyMap<string, ModelConfig>
}

/** The services of one identity, from the last response of the client API. */
export class FollowedServices implements UsableServices {
  #identity: ModelIdentity | undefined
  #byId: ReadonlyMap<string, FollowedService> = new Map()
  #idsByName: ReadonlyMap<string, string> = new Map()

  identity(): ModelIdentity | undefined {
    return this.#identity
  }

  idsOf(type: 'Dial' | 'Bind'): ReadonlySet<string> {
    const usable = Array.from(this.#byId).filter(([, { permissions }]) => permissions.has(type))
    return new Set(usable.map(([id]) => id))
  }

  service(id: string): ModelService | undefined {
    return this.#byId.get(id)?.service
  }

  configsOf({ id }: ModelService): ReadonlyMap<string, ModelConfig> {
    return this.#byId.get(id)?.configs ?? new Map()
  }

  /** Id of the service with this name; undefined if there is none. */
  idNamed(name: string): string | undefined {
    return this.#idsByName.get(name)
  }

  /**
   * @param shown the identity, from a response of `/current-identity`.
   * @returns whether the identity has changed.
   */
  setIdentity(shown: Fields): boolean {
    const before = this.#identity
    this.#identity = create(ModelIdentitySchema, {
      id: readTextField(shown, 'id'),
      name: readTextField(shown, 'name'),
      defaultHostingCost: costOf(shown['defaultHostingCost']) ?? 0,
      defaultHostingPrecedence: precedenceOf(shown['defaultHostingPrecedence']),
      serviceHostingCosts: Object.fromEntries(
        Object.entries(objectOrEmpty(shown['serviceHostingCosts'])).flatMap(([id, value]) => {
          const cost = costOf(value)
          return cost === null ? [] : [[id, cost] as const]
        }),
      ),
      serviceHostingPrecedences: Object.fromEntries(
        Object.entries(objectOrEmpty(shown['serviceHostingPrecedences'])).map(
          ([id, value]) => [id, precedenceOf(value)] as const,
        ),
      ),
      appDataJson: new TextEncoder().encode(JSON.stringify(objectOrEmpty(shown['appData']))),
    })
    return JSON.stringify(plain(before)) !== JSON.stringify(plain(this.#identity))
  }

  /** @param shown services, from a response of `/services`. */
  setServices(shown: readonly Fields[]): void {
    const found = shown.slice(0, serviceLimits.tunnelServicesMax).map(followedService)
    this.#byId = new Map(found.map((each) => [each.service.id, each]))
    this.#idsByName = new Map(found.map(({ service }) => [service.name, service.id]))
  }
}

function plain(identity: ModelIdentity | undefined): object | null {
  if (identity === undefined) return null
  return { ...identity, appDataJson: Buffer.from(identity.appDataJson).toString('base64') }
}

function followedService(shown: Fields): FollowedService {
  const [id, name] = [readTextField(shown, 'id'), readTextField(shown, 'name')]
  const configs = Object.entries(objectOrEmpty(shown['config'])).map(([type, data]) => {
    const dataJson = JSON.stringify(data)
    return [type, create(ModelConfigSchema, { id: `${id} ${type}`, name: type, dataJson })] as const
  })
  return {
    service: create(ModelServiceSchema, {
      id,
      name,
      // Encryption is required, unless the field explicitly disables it.
      encryptionRequired: shown['encryptionRequired'] !== false,
    }),
    permissions: new Set(readTextListField(shown, 'permissions')),
    configs: new Map(configs),
  }
}

function costOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : null
}

function precedenceOf(value: unknown): ModelPrecedence {
  if (value === 'required') return ModelPrecedence.REQUIRED
  return value === 'failed' ? ModelPrecedence.FAILED : ModelPrecedence.DEFAULT
}
