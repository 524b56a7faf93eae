import type { BackupControl, BackupRequest } from '../../../src/api/backups/backup-control.ts'
import type {
  ActiveCertificates,
  IssuedExternalCertificate,
  PkiControl,
} from '../../../src/api/cluster/pki-control.ts'
import type { RestoreControl } from '../../../src/api/backups/restore-control.ts'
import { type Actor, actorName } from '../../../src/ports/actor.ts'

const issued: IssuedExternalCertificate = { certificatePem: 'a certificate', notAfterMs: 2 }
const inForce: ActiveCertificates = {
  certificates: [],
  issuingPem: null,
  isRenewedHere: true,
  renewAtMs: 1,
  refused: null,
  alarm: null,
  serverCertificates: [
    {
      path: '/etc/console.pem',
      refused: null,
      certificate: {
        what: 'leaf',
        subject: 'CN=console',
        issuer: 'CN=public',
        sha256: 'ab',
        names: ['console.example.org'],
        notBeforeMs: 0,
        notAfterMs: 2_000_000_000_000,
        daysLeft: 1,
        level: 'none',
        isNotYetValid: false,
        isTrusted: null,
      },
    },
  ],
}

/** Records callers and requests; certificates are tested elsewhere. */
export class LocalPki implements PkiControl {
  readonly asked: (readonly [string, string])[] = []

  view(): ActiveCertificates {
    return inForce
  }

  renew(by: Actor): Promise<ActiveCertificates> {
    return this.#note('renew', by, inForce)
  }

  reload(by: Actor): Promise<ActiveCertificates> {
    return this.#note('reload', by, inForce)
  }

  installIssuing(
    _given: unknown,
    by: Actor,
  ): Promise<{ readonly notAfterMs: number; readonly formerNotAfterMs: number }> {
    return this.#note('install', by, { notAfterMs: 2, formerNotAfterMs: 1 })
  }

  issue(_request: unknown, by: Actor): Promise<IssuedExternalCertificate> {
    return this.#note('issue', by, issued)
  }

  renewMember(
    _pem: string,
    by: Actor,
  ): Promise<IssuedExternalCertificate & { readonly id: string }> {
    return this.#note('renew-member', by, { id: 'ctrl2', ...issued })
  }

  #note<T>(what: string, by: Actor, answer: T): Promise<T> {
    this.asked.push([what, actorName(by)])
    return Promise.resolve(answer)
  }
}

/** Returns the same small backup each time. */
export class LocalBackups implements BackupControl {
  readonly asked: (readonly [BackupRequest, string])[] = []
  /** Error to throw after the first piece of a backup. */
  failure: Error | null = null

  take(request: BackupRequest, by: Actor): Promise<AsyncIterable<Uint8Array>> {
    this.asked.push([request, actorName(by)])
    return Promise.resolve(this.#bytes())
  }

  list(): ReturnType<BackupControl['list']> {
    return Promise.resolve({ isScheduled: true, backups: [{ name: 'a.backup', takenAtMs: 5 }] })
  }

  async *#bytes(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('the first half, ')
    if (this.failure !== null) throw this.failure
    yield Buffer.from('the second half')
  }
}

/** Records the requested restores, and restores nothing. */
export class LocalRestores implements RestoreControl {
  readonly asked: (readonly [string, string, unknown])[] = []

  begin(announced: unknown, by: Actor): Promise<void> {
    this.asked.push(['begin', actorName(by), announced])
    return Promise.resolve()
  }

  stage(chunk: unknown, by: Actor): Promise<void> {
    this.asked.push(['stage', actorName(by), chunk])
    return Promise.resolve()
  }

  end(ending: unknown, by: Actor): ReturnType<RestoreControl['end']> {
    this.asked.push(['end', actorName(by), ending])
    return Promise.resolve({ index: 7, applied: ['ctrl1'] })
  }

  seal(factors: readonly unknown[]): ReturnType<RestoreControl['seal']> {
    return Promise.resolve(factors.map(() => ({ sealed: 'sealed', keyVersion: 1 })))
  }
}
