import { fabricService } from '../../entities/kinds/fabric-service.ts'
import { normalizeBody } from '../../entities/normalize-body.ts'
import type { WritePreparer } from './write-preparer.ts'

/**
 * Prepares a service for the fabric API: identities do not see services that were created there.
 */
export const prepareFabricService: WritePreparer = (_call, mode, body) => {
  const prepared = normalizeBody(fabricService, mode, body)
  if (mode !== 'create') return prepared
  return { ...prepared, fields: { ...prepared.fields, isFabricOnly: true } }
}
