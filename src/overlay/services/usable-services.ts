import type { ModelConfig, ModelIdentity, ModelService } from '../../../proto/gen/router_pb.ts'

/** Services that the identity of a tunnel may host and dial at this moment. */
export interface UsableServices {
  /** The identity; undefined if it is unknown, in which case it may use no service. */
  identity(): ModelIdentity | undefined
  /** Ids of the services that the identity may use. */
  idsOf(type: 'Dial' | 'Bind'): ReadonlySet<string>
  service(id: string): ModelService | undefined
  /** Configs of a service for this identity, by type name. */
  configsOf(service: ModelService): ReadonlyMap<string, ModelConfig>
}
