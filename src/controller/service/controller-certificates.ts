import type { Logger } from 'pino'

import { CertificateRenewer } from '../../cluster/secrets/certificate-renewer.ts'
import type { AlarmRaiser } from '../../cluster/alarm-table.ts'
import type { MeshIdentity } from '../../cluster/mesh/mesh-service.ts'
import { advertisedHosts } from '../../config/controller/advertised-hosts.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { systemClock } from '../../lib/clock.ts'
import type { CertificateWithKey } from '../../pki/authority/authority.ts'
import { CertificateError } from '../../pki/certificate.ts'
import type { ActionRecorder } from '../../ports/membership.ts'
import type { PkiControl } from '../../api/cluster/pki-control.ts'
import { createPkiControl } from '../admin/pki-control.ts'
import type { Credentials } from '../start/check-certificates.ts'
import type { IdentityPaths } from '../../pki/verify/identity-files.ts'
import { type RejectedFiles, ServerCertificates } from './server-certificates.ts'
import { errorMessage } from '../../lib/error-code.ts'

/** The issuing authority that all members share. */
interface SharedAuthority {
  /** The authority; null until this controller knows it. */
  issuing(): CertificateWithKey | null
  /** Replaces the authority of the whole cluster. @throws {Problem} */
  install(authority: CertificateWithKey): Promise<void>
}

interface CertificatesDeps {
  readonly config: ControllerConfig
  readonly credentials: Credentials
  readonly authority: SharedAuthority
  readonly onRenewed: (identity: MeshIdentity) => void
  readonly memberKeySha256: (id: string) => Uint8Array | null
  readonly alarms: AlarmRaiser
  readonly actions: ActionRecorder
  readonly log: Logger
}

/**
 * Renews and watches the certificates of one controller. Operators can also renew and reload them.
 */
export class ControllerCertificates {
  readonly control: PkiControl
  readonly servers: ServerCertificates
  readonly #renewer: CertificateRenewer
  readonly #identity: IdentityPaths

  /**
   * Reads the server certificates immediately, so that no listener uses a wrong certificate before
   * the start. Starts nothing else.
   */
  constructor(deps: CertificatesDeps) {
    this.#identity = deps.config.identity
    this.#renewer = renewerOf(deps)
    this.servers = serversOf(deps, this.#renewer)
    this.control = controlOf(deps, this)
    this.servers.reload()
  }

  get renewer(): CertificateRenewer {
    return this.#renewer
  }

  start(): void {
    this.#renewer.start()
    this.servers.start()
  }

  async stop(): Promise<void> {
    this.servers.stop()
    await this.#renewer.stop()
  }

  /**
   * Sets the list of server certificates, which the next reload reads, and the hosts that the
   * controller's own certificate must contain.
   */
  async configure(config: ControllerConfig): Promise<void> {
    this.servers.configure(config.serverCertificates)
    await this.#renewer.requireHosts(advertisedHosts(config))
  }

  /**
   * Checks immediately whether certificates must be renewed. Called when the shared secrets have
   * changed, which include the issuing authority.
   */
  look(): void {
    void this.#renewer.look()
  }

  /**
   * Reads all certificate and key files again, and uses the valid ones.
   * @returns the invalid files.
   */
  async reload(): Promise<readonly RejectedFiles[]> {
    const rejected = this.servers.reload()
    try {
      await this.#renewer.reload()
    } catch (error) {
      const { cert, key, ca } = this.#identity
      rejected.unshift({ paths: [cert, key, ca], error })
    }
    return rejected
  }

  /**
   * Reads all certificate and key files again, and uses the valid ones.
   * @throws {CertificateError | SecretFileError} for invalid files.
   */
  async requireReload(): Promise<void> {
    const [first, ...others] = await this.reload()
    if (first === undefined) return
    if (others.length === 0) throw first.error
    const sentences = [first, ...others].map(({ error }) => errorMessage(error))
    throw new CertificateError('untrusted', sentences.join('; '))
  }
}

function renewerOf(deps: CertificatesDeps): CertificateRenewer {
  const { config, credentials, authority, onRenewed, alarms, log } = deps
  const { certificatePem, privateKeyPem, caPem } = credentials
  return new CertificateRenewer({
    selfId: config.id,
    trustDomain: config.trustDomain,
    paths: config.identity,
    hosts: advertisedHosts(config),
    identity: { certificatePem, privateKeyPem, caPem },
    issuing: () => authority.issuing(),
    onRenewed,
    alarms,
    clock: systemClock,
    log,
  })
}

function serversOf(
  { config, alarms, log }: CertificatesDeps,
  renewer: CertificateRenewer,
): ServerCertificates {
  return new ServerCertificates({
    files: config.serverCertificates,
    ownLeaf: () => renewer.leaf,
    alarms,
    log,
    clock: systemClock,
  })
}

function controlOf(deps: CertificatesDeps, certificates: ControllerCertificates): PkiControl {
  const { authority } = deps
  return createPkiControl({
    renewer: certificates.renewer,
    serverCertificates: () => certificates.servers.view(),
    reload: () => certificates.requireReload(),
    trustDomain: deps.config.trustDomain,
    clock: systemClock,
    issuing: () => authority.issuing(),
    installIssuing: (next) => authority.install(next),
    actions: deps.actions,
    memberKeySha256: deps.memberKeySha256,
  })
}
