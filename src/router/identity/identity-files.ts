import type { RouterConfig } from '../../config/router/table.ts'
import type { PemSource } from '../../config/router/values.ts'

/** Paths of a router's identity if each part of the identity is in a file. */
export interface IdentityFiles {
  readonly cert: string
  readonly key: string
  readonly serverCert: string
  /** Null if the server certificate uses the client certificate's key. */
  readonly serverKey: string | null
  readonly ca: string
}

type IdentityFilesOrFault =
  | { readonly ok: true; readonly files: IdentityFiles }
  /** Why the identity has no such files, one sentence. */
  | { readonly ok: false; readonly fault: string }

/**
 * The files of a router's identity. Enrollment writes all of them, renewal only the certificates.
 * @returns a fault if the configuration lacks a file, contains PEM text instead of a file, or names
 * one file for two things.
 */
export function findIdentityFiles({ identity }: RouterConfig): IdentityFilesOrFault {
  const needed = {
    cert: identity.cert,
    key: identity.key,
    server_cert: identity.server_cert,
    ca: identity.ca,
  } satisfies Record<string, PemSource | null>
  const paths: Record<string, string> = {}
  for (const [name, source] of Object.entries(needed)) {
    if (source === null) return fault(`identity.${name} is missing: name a file for it`)
    if (source.path === null) {
      return fault(`identity.${name} is PEM text in the configuration: name a file for it`)
    }
    paths[name] = source.path
  }
  const serverKey = identity.server_key
  if (serverKey !== null && serverKey.path === null) {
    return fault('identity.server_key is PEM text in the configuration: name a file for it')
  }
  const { cert = '', key = '', server_cert: serverCert = '', ca = '' } = paths
  const separate = serverKey?.path ?? null
  const files = { cert, key, serverCert, serverKey: separate === key ? null : separate, ca }
  const named = [cert, key, serverCert, ca, ...(files.serverKey === null ? [] : [files.serverKey])]
  const twice = named.find((path, at) => named.indexOf(path) !== at)
  if (twice !== undefined) return fault(`identity names ${twice} for two things: name two files`)
  return { ok: true, files }
}

function fault(text: string): IdentityFilesOrFault {
  return { ok: false, fault: text }
}
