import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type NetworkInterfaceInfo, networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { hostInterfaces } from '../../src/router/reports/host-interfaces.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-interfaces-'))
  device('lo', { mtu: '65536', ifindex: '1', flags: '0x9', operstate: 'unknown' })
  device('eth0', { mtu: '1450', ifindex: '7', flags: '0x1003', operstate: 'up' })
  device('tun0', { mtu: '1280', ifindex: '12', flags: '0x1091', operstate: 'down' })
})
afterAll(() => rmSync(folder, { recursive: true }))

/** Creates the files by which Linux describes an interface, each with one value and a line end. */
function device(name: string, facts: Readonly<Record<string, string>>): void {
  mkdirSync(join(folder, name))
  for (const [fact, text] of Object.entries(facts)) {
    writeFileSync(join(folder, name, fact), `${text}\n`)
  }
}

const info = (cidr: string, mac: string): NetworkInterfaceInfo => ({
  address: cidr.split('/')[0] ?? '',
  netmask: '255.0.0.0',
  family: 'IPv4',
  mac,
  internal: cidr.startsWith('127.'),
  cidr,
})
const noMac = '00:00:00:00:00:00'
const loopback = { lo: [info('127.0.0.1/8', noMac)] }

describe('The network interfaces of a host', () => {
  test('have the MTU, index and flags that Linux shows', () => {
    const listed = {
      ...loopback,
      eth0: [info('10.0.0.5/24', '02:00:00:00:00:05')],
      tun0: [info('10.9.0.1/32', noMac)],
    }
    expect(hostInterfaces(listed, folder)).toEqual([
      // up, loopback, running
      {
        name: 'lo',
        hardwareAddress: '',
        mtu: 65_536,
        index: 1,
        flags: 37,
        addresses: ['127.0.0.1/8'],
      },
      // up, broadcast, multicast, running
      {
        name: 'eth0',
        hardwareAddress: '02:00:00:00:00:05',
        mtu: 1450,
        index: 7,
        flags: 51,
        addresses: ['10.0.0.5/24'],
      },
      // up, point to point, multicast
      {
        name: 'tun0',
        hardwareAddress: '',
        mtu: 1280,
        index: 12,
        flags: 25,
        addresses: ['10.9.0.1/32'],
      },
    ])
  })

  test('include the addresses of an interface alias such as eth0:1', () => {
    const mac = '02:00:00:00:00:05'
    const listed = { eth0: [info('10.0.0.5/24', mac)], 'eth0:1': [info('10.0.0.6/24', mac)] }
    const shown = hostInterfaces(listed, folder)
    expect(shown.map(({ name, addresses }) => [name, addresses])).toEqual([
      ['eth0', ['10.0.0.5/24', '10.0.0.6/24']],
    ])
  })

  test('are reported as up, without MTU and index, if the system does not describe them', () => {
    expect(hostInterfaces(loopback, join(folder, 'absent'))).toEqual([
      { name: 'lo', hardwareAddress: '', mtu: 0, index: 0, flags: 5, addresses: ['127.0.0.1/8'] },
    ])
  })

  test('have the names and indexes that the operating system of this host lists', () => {
    const names = Object.keys(networkInterfaces()).filter((name) => !name.includes(':'))
    const indexes = names.map((name) =>
      readFileSync(`/sys/class/net/${name}/ifindex`, 'utf8').trim(),
    )
    expect(hostInterfaces().map(({ name, index }) => [name, String(index)])).toEqual(
      names.map((name, at) => [name, indexes[at]]),
    )
  })
})
