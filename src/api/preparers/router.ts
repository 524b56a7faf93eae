import { edgeRouter } from '../../entities/kinds/edge-router.ts'
import { fabricRouter } from '../../entities/kinds/fabric-router.ts'
import { normalizeBody } from '../../entities/normalize-body.ts'
import type { Entity } from '../../entities/define-entity.ts'
import { enrollmentBatchStep } from './enrollment.ts'
import type { WritePreparer } from './write-preparer.ts'
import { type Clock, proposalNowMs } from '../../lib/clock.ts'
import type { ApiLimits } from '../limits.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { JwtSigner } from '../../auth/sessions/jwt-signer.ts'
import type { ApiVersionsKey } from '../api-deps.ts'

interface EdgeRouterPreparerDeps {
  readonly cluster: ClusterView
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly jwt: JwtSigner
  readonly clock: Clock
  readonly limits: ApiLimits
  readonly bindings: Readonly<Partial<Record<ApiVersionsKey, readonly string[]>>>
}

/** Prepares an edge router. A new router is created together with its enrollment token. */
export function edgeRouterPreparer(deps: EdgeRouterPreparerDeps): WritePreparer {
  return async (_call, mode, body, id) => {
    const prepared = normalizeBody(edgeRouter, mode, body)
    if (mode !== 'create') return prepared
    return { ...prepared, also: [await routerEnrollmentBatchStep(deps, 'edgeRouterId', id)] }
  }
}

/**
 * Prepares a router for `/routers` or `/transit-routers`. A new router is created together with its
 * enrollment token.
 */
export function transitRouterPreparer(deps: EdgeRouterPreparerDeps, entity: Entity): WritePreparer {
  return async (_call, mode, body, id) => {
    const prepared = normalizeBody(entity, mode, body)
    if (mode !== 'create') return prepared
    return {
      ...prepared,
      fields: { ...prepared.fields, isTransit: true },
      also: [await routerEnrollmentBatchStep(deps, 'transitRouterId', id)],
    }
  }
}

/**
 * Prepares a router of the fabric API: the caller chooses its id and may give the fingerprint of
 * its certificate.
 */
export const prepareFabricRouter: WritePreparer = (_call, mode, body, id) => {
  const { fields, ignoredFields } = normalizeBody(fabricRouter, mode, body)
  const { fingerprint } = body
  // Without a fingerprint in the body, keeps the stored one. Otherwise a replacement (PUT) would
  // lock out a router that has enrolled.
  const known =
    typeof fingerprint === 'string'
      ? { fingerprint: fingerprint.replaceAll(':', '').toLowerCase() || null }
      : {}
  return {
    id: mode === 'create' ? String(body['id']) : id,
    fields: { ...fields, ...known },
    ignoredFields,
  }
}

/** The step of a batch that creates the enrollment of a router, new or enrolling again. */
export function routerEnrollmentBatchStep(
  deps: EdgeRouterPreparerDeps,
  of: 'edgeRouterId' | 'transitRouterId',
  subjectId: string,
): ReturnType<typeof enrollmentBatchStep> {
  return enrollmentBatchStep(deps, {
    method: of === 'edgeRouterId' ? 'erott' : 'trott',
    of,
    subjectId,
    expiresAtMs: proposalNowMs(deps) + deps.limits.routerEnrollmentMs,
  })
}
