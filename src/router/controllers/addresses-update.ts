import { fromBinary } from '@bufbuild/protobuf'

import { UpdateCtrlAddressesSchema } from '../../../proto/gen/router_pb.ts'
import { isControllerId } from '../../lib/text/names.ts'
import { type ControllerKey, isApiOrigin, isControllerAddress } from './endpoints-file.ts'
import type { ReportedMembers, ReportedController } from './membership.ts'

const SHA256_BYTES = 32

interface AddressesUpdate extends Omit<ReportedMembers, 'senderId'> {
  /**
   * True if some members are temporarily missing from the list; the sender will send the complete
   * list.
   */
  readonly isInterim: boolean
}

/**
 * Reads a list of controllers. Skips invalid addresses and IDs.
 * @throws when the bytes cannot be decoded.
 */
export function readAddresses(body: Uint8Array): AddressesUpdate {
  const update = fromBinary(UpdateCtrlAddressesSchema, body)
  const { index, isLeader, isInterim } = update
  const controllers = update.controllers.flatMap((each): ReportedController[] => {
    const addresses = each.endpoints.map(({ address }) => address).filter(isControllerAddress)
    const { id } = each
    const keySha256 = keyText(each.publicKeySha256)
    const apis = each.clientApis.filter(isApiOrigin)
    return isControllerId(id) && addresses.length > 0 ? [{ id, addresses, apis, keySha256 }] : []
  })
  const removed = update.removed.flatMap(({ id, publicKeySha256 }): ControllerKey[] => {
    const keySha256 = keyText(publicKeySha256)
    return isControllerId(id) && keySha256 !== null ? [{ id, keySha256 }] : []
  })
  return { index, isLeader, isInterim, controllers, removed }
}

function keyText(sha256: Uint8Array): string | null {
  return sha256.length === SHA256_BYTES ? Buffer.from(sha256).toString('hex') : null
}
