import { normalise } from '../../entities/normalise.ts'
import type { Normalised } from '../../entities/normalise.ts'
import type { Entity } from '../../entities/define.ts'
import type { RequestMode } from '../../entities/schema.ts'
import type { JsonObject } from '../../lib/canonical-json.ts'
import type { ProposalInput } from '../../ports/proposer.ts'
import type { Call } from '../call.ts'
import type { ApiParts } from '../parts.ts'
import type { ApiServices } from '../services.ts'
import { prepareAuthPolicy } from './auth-policy.ts'
import { authenticatorPreparer } from './authenticator.ts'
import { prepareCa } from './ca.ts'
import { configTypePreparer, configPreparer } from './config.ts'
import { externalJwtSignerPreparer } from './external-jwt-signer.ts'
import { prepareIdentity } from './identity.ts'
import { postureCheckPreparer } from './posture-check.ts'

/** A body as the fields of a command, with the records that it was judged on. */
export interface Prepared extends Normalised {
  readonly judgedOn?: NonNullable<ProposalInput['judgedOn']>
}

/**
 * Makes a body, valid by its schema, into a write of the record that the path names (at create: of a new one). Asked again
 * when what it was judged on has moved. @throws {Problem} what the body is refused with.
 */
export type Preparer = (
  call: Call,
  mode: RequestMode,
  body: JsonObject,
) => Prepared | Promise<Prepared>

/** Of every kind: most bodies say what their record says; of some there is more to judge before they are proposed. */
export class Preparers {
  readonly #byKind: ReadonlyMap<string, Preparer>

  constructor(parts: ApiParts, services: Pick<ApiServices, 'passwords'>) {
    this.#byKind = new Map([
      ['authPolicy', prepareAuthPolicy],
      ['authenticator', authenticatorPreparer(parts, services)],
      ['ca', prepareCa],
      ['config', configPreparer(parts)],
      ['configType', configTypePreparer(parts)],
      ['externalJwtSigner', externalJwtSignerPreparer(parts)],
      ['identity', prepareIdentity],
      ['postureCheck', postureCheckPreparer(parts)],
    ])
  }

  of(entity: Entity): Preparer {
    return this.#byKind.get(entity.name) ?? ((_call, mode, body) => normalise(entity, mode, body))
  }
}
