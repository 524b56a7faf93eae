import { describe, expect, test } from 'vitest'

import { advertisedHosts } from '../../../src/config/controller/advertised-hosts.ts'
import { composeConfig } from '../../../src/config/controller/compose.ts'
import { parseControllerConfig } from '../../../src/config/controller/load.ts'

/** Hosts that a controller advertises if its peers use the name `ctrl1`. */
function hostsAt(webAdvertise: string, names = ''): string[] {
  const text = composeConfig({
    id: 'ctrl1',
    data: 'data',
    trustDomain: 'test.internal',
    meshBind: '0.0.0.0:1480',
    meshAdvertise: 'ctrl1:1480',
    routersBind: '0.0.0.0:1380',
    webBind: '0.0.0.0:1280',
    webAdvertise: 'ctrl1:1280',
    seeds: [],
  })
  const environment = { FLOTILLA_WEB_0_ADVERTISE: webAdvertise, FLOTILLA_WEB_0_NAMES: names }
  const parsed = parseControllerConfig('/etc/flotilla/config.yml', text, environment)
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults))
  return advertisedHosts(parsed.config)
}

describe('a controller that advertises different hosts to clients and to peers', () => {
  test('has the hosts for clients and for peers in its certificate', () => {
    expect(hostsAt('net.example.org:443')).toEqual(['ctrl1', 'net.example.org'])
    expect(hostsAt('ctrl1:1280')).toEqual(['ctrl1'])
  })

  test('has the additional host names of its listeners in its certificate', () => {
    const hosts = hostsAt('ctrl1:1280', 'api.example.org, 192.0.2.7, 2001:db8::7, ctrl1')
    expect(hosts).toEqual(['ctrl1', 'api.example.org', '192.0.2.7', '2001:db8::7'])
  })

  test('has every loopback name in its certificate if clients use one loopback name', () => {
    const hosts = ['ctrl1', '127.0.0.1', 'localhost', '::1']
    expect(hostsAt('127.0.0.1:1280')).toEqual(hosts)
    expect(hostsAt('localhost:1280').sort()).toEqual(hosts.sort())
  })
})
