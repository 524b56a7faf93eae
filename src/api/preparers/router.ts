import { edgeRouter } from '../../entities/kinds/edge-router.ts'
import { fabricRouter } from '../../entities/kinds/fabric-router.ts'
import { normalise } from '../../entities/normalise.ts'
import type { Entity } from '../../entities/define.ts'
import type { ApiParts } from '../parts.ts'
import { enrollmentStep } from './enrollment.ts'
import type { Preparer } from './preparer.ts'
import { judgedNowMs } from '../../lib/clock.ts'

/** A new edge router comes with the token that it enrolls by. */
export function edgeRouterPreparer(parts: ApiParts): Preparer {
  return async (_call, mode, body, id) => {
    const prepared = normalise(edgeRouter, mode, body)
    if (mode !== 'create') return prepared
    return { ...prepared, also: [await enrollmentOf(parts, 'edgeRouterId', id)] }
  }
}

/** The same for `/routers` and `/transit-routers`. */
export function transitRouterPreparer(parts: ApiParts, entity: Entity): Preparer {
  return async (_call, mode, body, id) => {
    const prepared = normalise(entity, mode, body)
    if (mode !== 'create') return prepared
    return {
      ...prepared,
      fields: { ...prepared.fields, isTransit: true },
      also: [await enrollmentOf(parts, 'transitRouterId', id)],
    }
  }
}

/** One that the caller names, and may know the certificate of already. */
export const prepareFabricRouter: Preparer = (_call, mode, body, id) => {
  const { fields, ignoredFields } = normalise(fabricRouter, mode, body)
  const { fingerprint } = body
  // Left out, it stays: otherwise a replacement would shut out a router that enrolled.
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

export function enrollmentOf(
  parts: Pick<ApiParts, 'bindings' | 'jwt' | 'cluster' | 'clock' | 'limits' | 'state'>,
  of: 'edgeRouterId' | 'transitRouterId',
  subjectId: string,
): ReturnType<typeof enrollmentStep> {
  return enrollmentStep(parts, {
    method: of === 'edgeRouterId' ? 'erott' : 'trott',
    of,
    subjectId,
    expiresAtMs: judgedNowMs(parts) + parts.limits.routerEnrollmentMs,
  })
}
