import { normalizeBody } from '../../entities/normalize-body.ts'
import type { Entity } from '../../entities/define-entity.ts'
import { fabricTerminator } from '../../entities/kinds/fabric-terminator.ts'
import { router } from '../../entities/kinds/router.ts'
import { terminator } from '../../entities/kinds/terminator.ts'
import { transitRouter } from '../../entities/kinds/transit-router.ts'
import type { WritePreparer } from './write-preparer.ts'
import { prepareServicePolicy } from './access-expiry.ts'
import { prepareAuthPolicy } from './auth-policy.ts'
import { authenticatorPreparer } from './authenticator.ts'
import { prepareCa } from './ca.ts'
import { configTypePreparer, configPreparer } from './config.ts'
import { enrollmentPreparer } from './enrollment.ts'
import { prepareFabricService } from './fabric-service.ts'
import { identityPreparer } from './identity.ts'
import { revocationPreparer } from './revocation.ts'
import { edgeRouterPreparer, prepareFabricRouter, transitRouterPreparer } from './router.ts'
import { terminatorPreparer } from './terminator.ts'
import { externalJwtSignerPreparer } from './external-jwt-signer.ts'
import { postureCheckPreparer } from './posture-check.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { SchemaValidator } from '../schemas/schema-validator.ts'
import type { ApiLimits } from '../limits.ts'
import type { PasswordVerifier } from '../../auth/factors/password-verifier.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { JwtSigner } from '../../auth/sessions/jwt-signer.ts'
import type { NetworkAuthorities } from '../../auth/certificates/network-authorities.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ApiVersionsKey } from '../api-deps.ts'

interface PreparersDeps {
  readonly cluster: ClusterView
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly schemas: SchemaValidator
  readonly jwt: JwtSigner
  readonly authorities: NetworkAuthorities
  readonly clock: Clock
  readonly limits: ApiLimits
  readonly allowsReservedSignerHosts: boolean
  readonly bindings: Readonly<Partial<Record<ApiVersionsKey, readonly string[]>>>
  readonly passwords: PasswordVerifier
}

/**
 * Converts the bodies of all kinds to commands. For most kinds, the schema is enough; some need
 * further checks or derived fields.
 */
export class WritePreparers {
  readonly #byKind: ReadonlyMap<string, WritePreparer>

  constructor(deps: PreparersDeps) {
    this.#byKind = new Map<string, WritePreparer>([
      ['authPolicy', prepareAuthPolicy],
      ['authenticator', authenticatorPreparer(deps)],
      ['ca', prepareCa],
      ['config', configPreparer(deps)],
      ['configType', configTypePreparer(deps)],
      ['edgeRouter', edgeRouterPreparer(deps)],
      ['enrollment', enrollmentPreparer(deps)],
      ['fabricRouter', prepareFabricRouter],
      ['fabricService', prepareFabricService],
      ['fabricTerminator', terminatorPreparer(deps, fabricTerminator)],
      ['identity', identityPreparer(deps)],
      ['revocation', revocationPreparer(deps)],
      ['router', transitRouterPreparer(deps, router)],
      ['servicePolicy', prepareServicePolicy],
      ['terminator', terminatorPreparer(deps, terminator)],
      ['transitRouter', transitRouterPreparer(deps, transitRouter)],
      ['externalJwtSigner', externalJwtSignerPreparer(deps)],
      ['postureCheck', postureCheckPreparer(deps)],
    ])
  }

  of(entity: Entity): WritePreparer {
    return (
      this.#byKind.get(entity.name) ?? ((_call, mode, body) => normalizeBody(entity, mode, body))
    )
  }
}
