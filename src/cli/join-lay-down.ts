import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { fromBinary } from '@bufbuild/protobuf'

import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import { withSeeds } from '../config/compose.ts'
import type { JoinAnswer } from '../ports/membership.ts'
import {
  checkChain,
  checkKeyMatches,
  leafControllerId,
  parseCertificates,
} from '../pki/certificate.ts'
import { writePublicFile, writeSecretFile } from '../pki/key-file.ts'
import { formDataFolder } from '../store/form-data-folder.ts'
import { writeRosterFile } from '../store/roster-file.ts'
import type { CheckList } from './check-list.ts'
import { advertisedHosts } from './config-from-flags.ts'
import type { PlannedConfig } from './config-from-flags.ts'
import { sentenceOf } from './failure.ts'
import { endJoinState } from './join-state.ts'
import type { JoinState } from './join-state.ts'

/** Mesh addresses of the members that were there, for a controller that has nothing yet. */
export function seedsOf(answer: JoinAnswer, selfId: string): string[] {
  const { members } = fromBinary(ConfigurationSchema, answer.configuration)
  return members.flatMap(({ id, address }) => (id === selfId ? [] : [address]))
}

/** What was answered is what was asked for; else nothing is laid down. */
export function checkAnswer(
  { config }: PlannedConfig,
  state: JoinState,
  answer: JoinAnswer,
  checks: CheckList,
  nowMs: number,
): void {
  try {
    const chain = parseCertificates(answer.certificatePem)
    checkKeyMatches(chain[0], state.privateKeyPem)
    checkChain(chain, parseCertificates(answer.caPem), nowMs)
    const id = leafControllerId(chain[0], config.trustDomain)
    if (id !== config.id || answer.clusterId !== state.clusterId) {
      throw new Error(`it is for controller ${id} of cluster ${answer.clusterId}`)
    }
    for (const host of advertisedHosts(config)) {
      const { native } = chain[0]
      if (native.checkHost(host) !== undefined || native.checkIP(host) !== undefined) continue
      throw new Error(`it does not name ${host}`)
    }
    const days = Math.floor((chain[0].notAfterMs - nowMs) / (24 * 60 * 60 * 1000))
    checks.ok('certificate', `spiffe://${config.trustDomain}/controller/${id}, for ${days} days`)
  } catch (error) {
    checks.fail(
      'certificate',
      `what the cluster answered can not be used: ${sentenceOf(error)}; repeat the join, and set the clock right if it is the time`,
      error,
    )
  }
}

/** Lays down everything in an order in which each step can be repeated; the mark that a join is under way goes last. */
export function layDown(
  planned: PlannedConfig,
  state: JoinState,
  answer: JoinAnswer,
  keepsCertificate: boolean,
): void {
  const { config, path, text, folder } = planned
  const { cert, key, ca } = config.identity
  for (const file of [cert, key, ca, config.data]) mkdirSync(dirname(file), { recursive: true })
  if (!keepsCertificate) {
    writeSecretFile(key, state.privateKeyPem)
    writePublicFile(cert, answer.certificatePem)
  }
  if (!keepsCertificate || !existsSync(ca)) writePublicFile(ca, answer.caPem)
  writePublicFile(path, withSeeds(text, seedsOf(answer, config.id)))
  if (!existsSync(config.data) || readdirSync(config.data).length === 0) {
    formDataFolder(config.data, {
      nodeId: config.id,
      storeId: state.storeId,
      clusterId: answer.clusterId,
      generation: answer.generation,
      entries: [],
    })
  }
  const { configuration, configurationIndex: index } = answer
  writeRosterFile(config.data, { configuration, index, claims: [] })
  endJoinState(folder)
}
