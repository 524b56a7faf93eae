import type { UsableServices } from '../../overlay/services/usable-services.ts'
import type { RouterDataModel } from '../model/router-data-model.ts'

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
