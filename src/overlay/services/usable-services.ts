import type { ModelConfig, ModelIdentity, ModelService } from '../../../proto/gen/router_pb.ts'
import type { RouterDataModel } from '../../router/model/router-data-model.ts'

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

/** The services of an identity in the data model of a router. */
export function servicesInModel(model: RouterDataModel, identityId: string): UsableServices {
  return {
    identity: () => model.contents.identities.get(identityId),
    idsOf: (type) => model.servicesOf(identityId, type),
    service: (id) => model.contents.services.get(id),
    configsOf: (service) =>
      model.contents.configsOf(service, model.contents.identities.get(identityId)),
  }
}
