import { normalise, type Normalised } from '../../entities/normalise.ts'
import type { Entity } from '../../entities/define.ts'
import { fabricTerminator } from '../../entities/kinds/fabric-terminator.ts'
import { router } from '../../entities/kinds/router.ts'
import { terminator } from '../../entities/kinds/terminator.ts'
import { transitRouter } from '../../entities/kinds/transit-router.ts'
import type { RequestMode } from '../../entities/schema.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import type { ProposalInput } from '../../ports/proposer.ts'
import type { RequestContext } from '../call.ts'
import type { ApiParts } from '../parts.ts'
import type { ApiServices } from '../records/services.ts'
import type { WriteStep } from '../records/writes.ts'
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

/** A body as the fields of a command, with the records that it was judged on. */
export interface WritePlan extends Normalised {
  readonly judgedOn?: NonNullable<ProposalInput['judgedOn']>
  /** Where it is not the one that the preparer was given. */
  readonly id?: string
  /** Writes of the same entry, before that of the record ... */
  readonly first?: readonly WriteStep[]
  /** ... and after that: all of them or none. */
  readonly also?: readonly WriteStep[]
}

/**
 * Makes a body, valid by its schema, into a write of the record `id` (at create: of a new one).
 * Asked again when what it was judged on has moved.
 * @throws {Problem} what the body is refused with.
 */
export type Preparer = (
  call: RequestContext,
  mode: RequestMode,
  body: JsonObject,
  id: string,
) => WritePlan | Promise<WritePlan>

/**
 * Of every kind: most bodies say what their record says; of some there is more to judge before they
 * are proposed.
 */
export class Preparers {
  readonly #byKind: ReadonlyMap<string, Preparer>

  constructor(parts: ApiParts, services: Pick<ApiServices, 'passwords'>) {
    this.#byKind = new Map<string, Preparer>([
      ['authPolicy', prepareAuthPolicy],
      ['authenticator', authenticatorPreparer(parts, services)],
      ['ca', prepareCa],
      ['config', configPreparer(parts)],
      ['configType', configTypePreparer(parts)],
      ['edgeRouter', edgeRouterPreparer(parts)],
      ['enrollment', enrollmentPreparer(parts)],
      ['fabricRouter', prepareFabricRouter],
      ['fabricService', prepareFabricService],
      ['fabricTerminator', terminatorPreparer(parts, fabricTerminator)],
      ['identity', identityPreparer(parts)],
      ['revocation', revocationPreparer(parts)],
      ['router', transitRouterPreparer(parts, router)],
      ['terminator', terminatorPreparer(parts, terminator)],
      ['transitRouter', transitRouterPreparer(parts, transitRouter)],
      ['externalJwtSigner', externalJwtSignerPreparer(parts)],
      ['postureCheck', postureCheckPreparer(parts)],
    ])
  }

  of(entity: Entity): Preparer {
    return this.#byKind.get(entity.name) ?? ((_call, mode, body) => normalise(entity, mode, body))
  }
}
