import type { ModelConfig, ModelIdentity, ModelService } from '../../../proto/gen/router_pb.ts'

/** Services that the identity of a tunnel may currently host and dial. */
export interface UsableServices {
  /** undefined when the identity is unknown; it may then use no service. */
  identity(): ModelIdentity | undefined
  /** Ids of the services that the identity may use. */
  idsOf(type: 'Dial' | 'Bind'): ReadonlySet<string>
  service(id: string): ModelService | undefined
  /** Configs of a service for this identity, by type name. */
  configsOf(service: ModelService): ReadonlyMap<string, ModelConfig>
}
