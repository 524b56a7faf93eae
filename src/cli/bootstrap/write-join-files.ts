import { existsSync, readdirSync } from 'node:fs'
import { dirname } from 'node:path'

import { setConfigOptions } from '../../config/controller/compose.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import type { JoinResponse } from '../../ports/membership.ts'
import {
  BUNDLE_CERTIFICATES_MAX,
  type Certificate,
  checkCertificateChain,
  checkKeyMatches,
  leafControllerId,
  parseCertificates,
} from '../../pki/certificate.ts'
import { missingHosts } from '../../pki/authority/renewal.ts'
import { writePublicFile, writeSecretFile } from '../../pki/secret-file.ts'
import { createDataFolder } from '../../store/folder/create-data-folder.ts'
import { writeMembershipCacheFile } from '../../store/folder/membership-cache-file.ts'
import { makeFolder } from '../terminal/make-folder.ts'
import type { CheckList } from '../terminal/check-list.ts'
import { advertisedHosts } from '../../config/controller/advertised-hosts.ts'
import type { PlannedConfig } from './config-from-flags.ts'
import { deleteJoinState, type JoinState } from './join-state.ts'
import { errorMessage } from '../../lib/error-code.ts'

/** Verifies that the join response matches the request; if not, the join ends. */
export function verifyJoinResponse(
  { config }: PlannedConfig,
  state: JoinState,
  answer: JoinResponse,
  checks: CheckList,
  { keepsCertificate, nowMs }: { readonly keepsCertificate: boolean; readonly nowMs: number },
): void {
  const leaf = judgedLeaf(config, state, answer, checks, nowMs)
  const lacking = missingHosts(leaf, advertisedHosts(config))
  if (lacking.length > 0) {
    // The hosts can differ: for every request with the same ticket, the cluster returns the
    // certificate of the first request, even if a later attempt requests other hosts.
    checks.fail(
      'certificate',
      `the certificate lacks ${lacking.join(', ')}, which the first attempt with this ticket did not request; rerun the join with a new ticket ('flotilla cluster invite'), or with the addresses of the first attempt`,
    )
  }
  // A controller with its own certificate does not use the one in the response.
  if (keepsCertificate) return
  const days = Math.round((leaf.notAfterMs - nowMs) / (24 * 60 * 60 * 1000))
  const spiffeId = `spiffe://${config.trustDomain}/controller/${config.id}`
  checks.ok('certificate', `${spiffeId}, for ${days} days`)
}

function judgedLeaf(
  { id, trustDomain }: ControllerConfig,
  { privateKeyPem, clusterId }: JoinState,
  answer: JoinResponse,
  checks: CheckList,
  nowMs: number,
): Certificate {
  try {
    const chain = parseCertificates(answer.certificatePem)
    checkKeyMatches(chain[0], privateKeyPem)
    checkCertificateChain(
      chain,
      parseCertificates(answer.caPem, { certificatesMax: BUNDLE_CERTIFICATES_MAX }),
      nowMs,
    )
    const found = leafControllerId(chain[0], trustDomain)
    if (found === id && answer.clusterId === clusterId) return chain[0]
    throw new Error(`it is for controller ${found} of cluster ${answer.clusterId}`)
  } catch (error) {
    return checks.fail(
      'certificate',
      `unusable response of the cluster: ${errorMessage(error)}; rerun the join, and correct the clock if the time is wrong`,
      error,
    )
  }
}

/**
 * Writes all files, in an order in which each step can be repeated after a crash. Removes the file
 * `.joining` last.
 * @param seeds mesh addresses of members, which the controller uses until it has the list of
 * members.
 */
export function writeJoinFiles(
  planned: PlannedConfig,
  state: JoinState,
  answer: JoinResponse,
  {
    keepsCertificate,
    seeds,
  }: { readonly keepsCertificate: boolean; readonly seeds: readonly string[] },
): void {
  const { config, path, text, folder } = planned
  const { cert, key, ca } = config.identity
  for (const file of [cert, key, ca, config.data]) makeFolder(dirname(file))
  if (!keepsCertificate) {
    writeSecretFile(key, state.privateKeyPem)
    writePublicFile(cert, answer.certificatePem)
  }
  if (!keepsCertificate || !existsSync(ca)) writePublicFile(ca, answer.caPem)
  writePublicFile(path, setConfigOptions(text, { 'cluster.seeds': seeds }))
  if (!existsSync(config.data) || readdirSync(config.data).length === 0) {
    createDataFolder(config.data, {
      nodeId: config.id,
      storeId: state.storeId,
      clusterId: answer.clusterId,
      generation: answer.generation,
      entries: [],
    })
  }
  const { configuration, configurationIndex: index } = answer
  writeMembershipCacheFile(config.data, { configuration, index, claims: [], marks: [] })
  deleteJoinState(folder)
}
