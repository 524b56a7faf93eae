import type { RecoveredAdmin } from '../../api/cluster/recover-admin.ts'
import { openClusterConnection } from '../client/connection.ts'
import { printJson, printLine } from '../terminal/output.ts'
import { readSecretInput } from '../terminal/secret-input.ts'

export interface RecoverAdminOptions {
  readonly config: string
  readonly name?: string
  readonly passwordFile: string
  readonly json?: boolean
}

/**
 * Sets a new password with which an administrator can log in, through the controller on this host.
 */
export async function recoverAdminAccess(options: RecoverAdminOptions): Promise<void> {
  const { config, name, passwordFile, json } = options
  const ask = openClusterConnection({ config })
  const password = readSecretInput(passwordFile, 'the password')
  const params = { ...(name === undefined ? {} : { name }), password }
  const admin = (await ask('recover-admin', params)) as RecoveredAdmin
  if (json === true) {
    printJson(admin)
    return
  }
  printLine(
    `${admin.name} can log in as ${admin.username} with the new password (auth policy ${admin.authPolicyId}); its sessions have ended`,
  )
}
