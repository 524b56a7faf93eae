import { randomUUID } from 'node:crypto'
import { ca } from '../../entities/kinds/ca.ts'
import { normalizeBody } from '../../entities/normalize-body.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import { type Certificate, CertificateError, parseCertificate } from '../../pki/certificate.ts'
import { readPemBlocks } from '../../pki/pem.ts'
import { checkKeyStrength } from './certificates.ts'
import type { WritePlan, WritePreparer } from './write-preparer.ts'

/**
 * Prepares a CA. A new CA gets a token; to verify the CA, its owner later issues a certificate with
 * that token as its common name. A patch removes the external ID claim if `externalIdClaim` is null
 * or if OpenZiti's CLI sends the patch for `--clear-external-id-claim`; `externalIdClaim: {}`
 * changes nothing.
 */
export const prepareCa: WritePreparer = (_call, mode, body) => {
  const prepared = normalizeBody(ca, mode, body)
  if (mode === 'create') return newCa(prepared)
  if (mode !== 'patch' || !clearsClaim(body)) return prepared
  return { ...prepared, fields: { ...prepared.fields, externalIdClaim: null } }
}

/**
 * Whether a patch removes the external ID claim. `ziti edge update ca --clear-external-id-claim`
 * sends only `identityRoles: null`, a list that its Go type always contains. A patch with any other
 * member may be meant to change that member, and must not remove the claim.
 */
function clearsClaim(body: JsonObject): boolean {
  if (body['externalIdClaim'] === null) return true
  const [only, ...others] = Object.keys(body)
  return others.length === 0 && only === 'identityRoles' && body['identityRoles'] === null
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

const CERTIFICATES_READ_MAX = 2

function firstCertificate(pem: string): Certificate {
  const blocks = readPemBlocks(pem, CERTIFICATES_READ_MAX)
  const [block] = blocks
  if (block?.label !== 'CERTIFICATE') {
    throw fieldProblem('certPem', 'certPem must begin with the PEM block of a certificate')
  }
  // Refuses several certificates: it would be unclear whether all of them are trusted, or only the
  // first one.
  if (blocks.length > 1) {
    throw fieldProblem('certPem', 'certPem must be one certificate; create a CA for each')
  }
  try {
    return parseCertificate(block.der)
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error
    throw fieldProblem('certPem', 'certPem cannot be parsed as a certificate')
  }
}
