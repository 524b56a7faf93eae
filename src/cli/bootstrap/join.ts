import { existsSync, readdirSync, rmdirSync } from 'node:fs'

import { systemClock } from '../../lib/clock.ts'
import { createCertificateRequest } from '../../pki/authority/certificate-request.ts'
import type { Ticket } from '../../pki/secrets/ticket.ts'
import { FEATURE_LEVEL } from '../../ports/feature-level.ts'
import { CheckList } from '../terminal/check-list.ts'
import { advertisedHosts } from '../../config/controller/advertised-hosts.ts'
import {
  type ConfigFlags,
  planConfig,
  type PlannedConfig,
  refuseForeignPlannedFolders,
} from './config-from-flags.ts'
import { parseControllerOrigin } from '../client/api-client.ts'
import { toOperatorFailure } from '../../controller/command-failure.ts'
import { verifyJoinResponse, writeJoinFiles } from './write-join-files.ts'
import {
  checkJoinConfig,
  checkJoinFolder,
  checkJoinIdentity,
  checkJoinMembers,
  checkJoinPorts,
  checkJoinTicket,
} from './join-preflight.ts'
import { checkStillAdmitted } from './still-admitted.ts'
import { type ReachedMember, requestJoin } from './join-request.ts'
import { adoptClusterOptions } from './adopt-cluster-options.ts'
import { createJoinState, deleteJoinState, type JoinState, readJoinState } from './join-state.ts'
import { checkJoinAddress, seedsForJoin } from './member-seeds.ts'
import { printJson, printLine } from '../terminal/output.ts'
import { readSecretInput } from '../terminal/secret-input.ts'
import { printWarning } from '../terminal/short-host-name.ts'
import { firstStartCommand } from '../terminal/start-command.ts'
import { programVersion } from '../../controller/version.ts'

const FABRIC_API = '/fabric/v1'

export interface JoinOptions extends ConfigFlags {
  readonly ticketFile: string
  /**
   * Addresses at which this host reaches members; they are tried before the addresses in the
   * ticket.
   */
  readonly controller: readonly string[]
  /** False: write all files, but do not run the controller. */
  readonly run: boolean
  readonly json?: boolean
}

/**
 * `cluster join CONFIG` creates everything that a new controller needs with one ticket, then runs
 * the controller unless `--no-run` is given. Repeating it resumes an interrupted join. A
 * refused join leaves no files behind, unless an earlier request may have succeeded.
 * @throws {CommandFailure} exit 2 for flags and configuration, otherwise 1, for example for a
 * failed check.
 */
export async function joinCluster(path: string, options: JoinOptions): Promise<void> {
  const checks = new CheckList(options.json === true)
  const given = options.controller.map(
    (url) => parseControllerOrigin(url, '--controller: ') + FABRIC_API,
  )
  const text = readSecretInput(options.ticketFile, 'the ticket')
  const read = checkJoinTicket(text, checks, systemClock.nowMs())
  const ticket = { ...read, addresses: [...new Set([...given, ...read.addresses])] }
  const planned = planConfig(path, options, ticket.trustDomain)
  refuseForeignPlannedFolders(planned)
  try {
    await prepareJoin(planned, ticket, text, checks)
  } catch (error) {
    if (options.json === true) printJson({ isPrepared: false, checks: checks.checks })
    throw toOperatorFailure(error)
  }
  printWarning(planned.warning)
  if (options.run) {
    const { runJoinedController } = await import('./run-joined-controller.ts')
    await runJoinedController(planned.path, {
      isVoter: ticket.isVoter,
      isJson: options.json === true,
    })
    return
  }
  const command = firstStartCommand('controller', planned.path)
  const { id } = planned.config
  if (options.json === true) {
    printJson({ isPrepared: true, id, clusterId: ticket.clusterId, command, checks: checks.checks })
  } else {
    printLine(`${id} is prepared; it joins when started:\n  ${command}`)
  }
}

/**
 * Runs the checks, sends the request and writes the files, unless an earlier run has done so.
 * @throws {CommandFailure}
 */
export async function prepareJoin(
  planned: PlannedConfig,
  ticket: Ticket,
  ticketText: string,
  checks: CheckList,
): Promise<void> {
  process.umask(0o077)
  const nowMs = systemClock.nowMs()
  const { config, folder } = planned
  checkJoinConfig(planned, ticket, checks)
  const data = checkJoinFolder(config, ticket, checks)
  const earlier = readJoinState(folder)
  // `.joining` is removed after the data folder is written, so a data folder without `.joining`
  // shows that the join is complete.
  if (data === 'own' && earlier === null) {
    await checkStillAdmitted(config, checks)
    return
  }
  const identity = checkJoinIdentity(config, earlier, ticket, checks, nowMs)
  await checkJoinPorts(config, checks)
  const members = await checkJoinMembers(ticket, checks)
  await checkJoinAddress(config, ticket.caPem, checks)
  const isFolderOurs = !existsSync(folder)
  const state = earlier ?? createJoinState(folder, config.id, ticket, identity.privateKeyPem)
  await askAndLayDown(
    { planned, ticket, ticketText, checks, members, state, isFolderOurs },
    {
      keepsCertificate: identity.keepsCertificate,
      nowMs,
    },
  )
}

interface Asking {
  readonly planned: PlannedConfig
  readonly ticket: Ticket
  readonly ticketText: string
  readonly checks: CheckList
  readonly members: readonly ReachedMember[]
  readonly state: JoinState
  readonly isFolderOurs: boolean
}

async function askAndLayDown(
  asking: Asking,
  { keepsCertificate, nowMs }: { readonly keepsCertificate: boolean; readonly nowMs: number },
): Promise<void> {
  const { planned, ticket, ticketText, checks, state } = asking
  const { config } = planned
  const request = {
    ticket: ticketText.trim(),
    id: config.id,
    certificateRequestPem: await createCertificateRequest({
      privateKeyPem: state.privateKeyPem,
      id: config.id,
    }),
    storeId: state.storeId,
    address: config.cluster.advertise,
    hosts: advertisedHosts(config),
    version: `v${programVersion()}`,
    featureLevel: FEATURE_LEVEL,
  }
  const addresses = asking.members.map(({ address }) => address)
  const outcome = await requestJoin(ticket, addresses, request)
  switch (outcome.type) {
    case 'refused':
      if (!outcome.isOpen) forget(asking)
      return checks.fail('admission', outcome.sentence)
    case 'unknown':
      if (!outcome.isSent) forget(asking)
      return checks.fail(
        'admission',
        `${outcome.sentence}; outcome unknown; rerun the same command to resume`,
      )
    case 'admitted':
      checks.ok(
        'admission',
        `as ${outcome.answer.isVoter ? 'voter' : 'learner'}, supports feature levels up to ${FEATURE_LEVEL}`,
      )
      verifyJoinResponse(planned, state, outcome.answer, checks, { keepsCertificate, nowMs })
      writeJoinFiles(
        adoptClusterOptions(planned, outcome.answer.sharedOptions, checks),
        state,
        outcome.answer,
        { keepsCertificate, seeds: await seedsForJoin(config, outcome.answer, checks) },
      )
      checks.ok('files', planned.folder)
  }
}

/**
 * Removes the files of a join that was refused or never sent. If an earlier run created the key and
 * store ID, they stay, because the cluster may have admitted the controller with them.
 */
function forget({ state, planned: { folder }, isFolderOurs }: Asking): void {
  if (!state.isNew) return
  deleteJoinState(folder)
  if (isFolderOurs && readdirSync(folder).length === 0) rmdirSync(folder)
}
