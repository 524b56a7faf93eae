import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fromBinary } from '@bufbuild/protobuf'

import { CommandKind, CommandSchema, FormSchema } from '../../proto/gen/command_pb.ts'
import { requirePresent } from '../../src/lib/assert.ts'
import type { SecretVersion, SharedSecretName } from '../../src/lib/shared-secrets.ts'
import { unwrapSecret } from '../../src/pki/secrets/wrapped-secret.ts'
import type { Entry } from '../../src/raft/types.ts'
import { openLog } from '../../src/store/log/open-log.ts'

export interface FormedSecret {
  readonly version: number
  readonly secret: Uint8Array
  readonly certificatePem: string
}

/**
 * A shared secret from the formation of a cluster, decrypted as its controller does: with the key
 * file next to the data folder whose log contains the forming command.
 * @param folder has `controller.key` and `data` of a controller that is not writing.
 */
export async function formedSecret(
  folder: string,
  nodeId: string,
  name: SharedSecretName,
): Promise<FormedSecret> {
  for (const { type, data } of entriesOf(join(folder, 'data'))) {
    if (type !== 'command') continue
    const command = fromBinary(CommandSchema, data)
    if (command.kind !== CommandKind.FORM) continue
    const { clusterId, records } = fromBinary(FormSchema, command.payload)
    const record = records.find((one) => one.entity === 'sharedSecret' && one.id === name)
    const { versions } = JSON.parse(
      Buffer.from(requirePresent(record, 'the secret').json).toString(),
    ) as {
      readonly versions: readonly SecretVersion[]
    }
    const { version, wrapped, certificatePem } = requirePresent(versions[0], 'a version of it')
    const secret = await unwrapSecret(
      requirePresent(wrapped[nodeId], 'one wrapped for the controller'),
      readFileSync(join(folder, 'controller.key'), 'utf8'),
      { clusterId, name, version, nodeId },
    )
    return { version, secret, certificatePem }
  }
  throw new Error(`the log in ${folder} does not hold the forming command`)
}

/** Opens a copy, because opening a log repairs it. */
function entriesOf(data: string): readonly Entry[] {
  const copy = mkdtempSync(join(tmpdir(), 'flotilla-log-'))
  try {
    cpSync(data, copy, { recursive: true, filter: (path) => !path.endsWith('.sock') })
    const { disk, restored } = openLog(copy, {})
    disk.closeNow()
    return restored.entries
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}
