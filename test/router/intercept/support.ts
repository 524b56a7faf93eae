/**
 * A query of a resolver for one name. @param type type of the requested records; 1: IPv4 addresses.
 */
export function dnsQuery(id: number, name: string, type = 1): Buffer {
  const header = Buffer.alloc(12)
  header.writeUInt16BE(id, 0)
  header.writeUInt16BE(0x0100, 2)
  header.writeUInt16BE(1, 4)
  const labels = name
    .split('.')
    .flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)])
  return Buffer.concat([header, ...labels, Buffer.from([0, 0, type, 0, 1])])
}
