import { randomUUID } from 'node:crypto'
import { ca } from '../../entities/kinds/ca.ts'
import { normalise } from '../../entities/normalise.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import { type Certificate, CertificateError, parseCertificate } from '../../pki/certificate.ts'
import { pemBlocks } from '../../pki/pem.ts'
import { checkKeyStrength } from './certificates.ts'
import type { WritePlan, Preparer } from './preparer.ts'

/**
 * A CA begins with a token that its owner signs a certificate over. A patch takes the claim away by
 * null: without one it is as it was, and an empty object changes nothing of it.
 */
export const prepareCa: Preparer = (_call, mode, body) => {
  const prepared = normalise(ca, mode, body)
  if (mode === 'create') return newCa(prepared)
  if (mode !== 'patch' || body['externalIdClaim'] !== null) return prepared
  return { ...prepared, fields: { ...prepared.fields, externalIdClaim: null } }
}

function newCa(prepared: WritePlan): WritePlan {
  const certificate = firstCertificate(String(prepared.fields['certPem']))
  if (!certificate.isAuthority) throw new Problem('CERTIFICATE_IS_NOT_CA')
  checkKeyStrength(certificate, 'certPem')
  const made: JsonObject = {
    certPem: certificate.pem,
    fingerprint: certificate.sha1,
    verificationToken: randomUUID(),
  }
  return { ...prepared, fields: { ...prepared.fields, ...made } }
}

function firstCertificate(pem: string): Certificate {
  const [block] = pemBlocks(pem, 1)
  if (block?.label !== 'CERTIFICATE') {
    throw fieldProblem('certPem', 'certPem must begin with the PEM block of a certificate')
  }
  try {
    return parseCertificate(block.der)
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error
    throw fieldProblem('certPem', 'certPem cannot be parsed as a certificate')
  }
}
