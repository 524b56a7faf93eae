import type { ModelConfig, ModelIdentity, ModelService } from '../../../proto/gen/router_pb.ts'

/** Services that the identity of a tunnel may host and dial, as of now. */
export interface UsableServices {
  /** Undefined: it is not known, and may use nothing. */
  identity(): ModelIdentity | undefined
  /** Ids of the services that it may use. */
  idsOf(type: 'Dial' | 'Bind'): ReadonlySet<string>
  service(id: string): ModelService | undefined
  /** Configs of a service as the identity has them, by the name of their type. */
  configsOf(service: ModelService): ReadonlyMap<string, ModelConfig>
}
