import type { Logger } from 'pino'

import { CertificateKeeper } from '../cluster/secrets/certificate-keeper.ts'
import type { AlarmRaiser } from '../ports/alarms.ts'
import type { MeshIdentity } from '../cluster/transport/mesh-service.ts'
import type { ControllerConfig } from '../config/options.ts'
import { systemClock } from '../lib/clock.ts'
import { parseHostPort } from '../lib/names.ts'
import type { CertifiedKey } from '../pki/authority.ts'
import type { ActionRecorder } from '../ports/membership.ts'
import type { PkiControl } from '../ports/pki-control.ts'
import type { Credentials } from './start/check.ts'
import { pkiControl } from './admin/pki-control.ts'

/** The issuing authority that the members share. */
export interface SharedAuthority {
  /** null as long as it is not known here. */
  issuing(): CertifiedKey | null
  /** Makes another one that of the whole cluster. @throws {Problem} */
  install(authority: CertifiedKey): Promise<void>
}

/** What looks after the certificates of one controller, and what operators ask of them. Not started yet. */
export function keepCertificates(parts: {
  readonly config: ControllerConfig
  readonly credentials: Credentials
  readonly authority: SharedAuthority
  readonly onRenewed: (identity: MeshIdentity) => void
  readonly memberKeySha256: (id: string) => Uint8Array | null
  readonly alarms: AlarmRaiser
  readonly actions: ActionRecorder
  readonly log: Logger
}): { readonly keeper: CertificateKeeper; readonly control: PkiControl } {
  const { config, credentials, authority, onRenewed, alarms, log } = parts
  const { certificatePem, privateKeyPem, caPem } = credentials
  const issuing = (): CertifiedKey | null => authority.issuing()
  const keeper = new CertificateKeeper({
    selfId: config.id,
    trustDomain: config.trustDomain,
    paths: config.identity,
    hosts: advertisedHosts(config),
    identity: { certificatePem, privateKeyPem, caPem },
    issuing,
    onRenewed,
    alarms,
    clock: systemClock,
    log,
  })
  const control = pkiControl({
    keeper,
    trustDomain: config.trustDomain,
    clock: systemClock,
    issuing,
    installIssuing: (next) => authority.install(next),
    actions: parts.actions,
    memberKeySha256: parts.memberKeySha256,
  })
  return { keeper, control }
}

/** Under which peers and clients reach this controller. */
function advertisedHosts({ web, cluster }: ControllerConfig): string[] {
  const advertised = [...web.map(({ advertise }) => advertise), cluster.advertise]
  const hosts = advertised.map((address) => parseHostPort(address)?.host)
  return [...new Set(hosts.filter((host) => host !== undefined))]
}
