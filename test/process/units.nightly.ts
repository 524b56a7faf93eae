import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'

import type { OpenZitiMember } from '../../src/api/cluster/cluster-status.ts'
import { buildPackages, type Packages, programVersion } from '../support/packages.ts'
import { pageText, shellBlocks } from '../support/pages.ts'
import { missingSystemd, SystemdHost } from '../support/systemd-host.ts'
import { until } from './support/client.ts'

// Goal: the shipped systemd units run everything that docs/ configures, restart a process that
// hangs, and can be upgraded without a refused write. Method: the packages that `make package`
// creates, installed on a host without a network whose process 1 is systemd. FLOTILLA_SYSTEMD_ROOT
// is the root folder of that host; by default the test uses that of this machine.

const version = programVersion()
const next = version.replace(/\d+$/, (patch) => String(Number(patch) + 1))
const missing = missingSystemd()
const SLOW_MS = 300_000
/** The test builds and packages two versions. */
const BUILD_MS = 1_800_000
const EVERY_MS = 500
const names = ['ctrl1', 'ctrl2', 'ctrl3']
const address = (name: string): string => `127.0.1.${name.at(-1)}`
const config = (name: string): string => `/etc/flotilla/${name}/config.yml`

let folder: string
let packages: Packages
let later: Packages
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-units-'))
  if (missing !== null) return
  const [first, second] = await buildPackages(folder, [version, next])
  if (first === undefined || second === undefined) throw new Error('no packages')
  ;[packages, later] = [first, second]
}, BUILD_MS)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.skipIf(missing !== null)(`the Debian packages on a host ${missing ?? ''}`, () => {
  let host: SystemdHost
  beforeAll(async () => {
    host = await SystemdHost.boot('lab')
    const lines = names.map((name) => `${address(name)} ${name}.example.net\n`)
    const more = '127.0.0.1 localhost lab router.example.net web.example.net proxy.example.net\n'
    await host.write('/etc/hosts', `${lines.join('')}${more}`)
    await host.run('rm -f /etc/resolv.conf && : > /etc/resolv.conf')
  }, SLOW_MS)
  afterAll(async () => {
    await host[Symbol.asyncDispose]()
  })

  async function install({ folder: from, debian }: Packages): Promise<string> {
    await host.run('rm -rf /root/debs')
    await host.copyIn(from, '/root/debs')
    return await host.run(`cd /root/debs && dpkg --install ${debian.join(' ')} 2>&1`)
  }

  async function show(unit: string, property: string): Promise<string> {
    return (await host.run(`systemctl show --value --property ${property} ${unit}`)).trim()
  }

  async function log(unit: string): Promise<string> {
    return await host.try(`journalctl --quiet --output=cat --lines 40 --unit ${unit}`)
  }

  /** Restarts a unit, and fails with the log of the unit when it does not become ready. */
  async function restart(unit: string): Promise<void> {
    await host.run(`timeout 120 systemctl restart ${unit}`).catch(async (error: unknown) => {
      throw new Error(await log(unit), { cause: error })
    })
    expect(await show(unit, 'ActiveState'), await log(unit)).toBe('active')
  }

  async function members(): Promise<readonly OpenZitiMember[]> {
    const text = await host.try(`flotilla cluster list --json --config ${config('ctrl1')}`)
    return text.startsWith('[') ? (JSON.parse(text) as readonly OpenZitiMember[]) : []
  }

  async function untilVoters(count: number): Promise<void> {
    await until(
      `${count} voters are connected`,
      async () => (await members()).filter((m) => m.voter && m.connected).length === count,
      SLOW_MS,
      EVERY_MS,
    )
  }

  async function alarms(name: string): Promise<readonly string[]> {
    const text = await host.run(`flotilla cluster status --json --config ${config(name)}`)
    const { alarms: raised = [] } = JSON.parse(text) as { alarms?: readonly { code: string }[] }
    return raised.map(({ code }) => code)
  }

  const makeFolders = (name: string): string =>
    `install -d -o flotilla -g flotilla -m 0700 /etc/flotilla/${name} /var/lib/flotilla/${name}`

  const planned = (name: string): string =>
    `${config(name)} --id ${name} --data /var/lib/flotilla/${name}/data --advertise ${name}.example.net ` +
    `--bind-api ${address(name)}:1280 --bind-router ${address(name)}:1380 --bind-cluster ${address(name)}:1480`

  async function enroll(name: string): Promise<void> {
    const fields = `name=${name} type=Device isAdmin=false roleAttributes=${name}`
    await host.run(`${makeFolders(name)}
      flotilla create identity ${fields} 'enrollment={"ott":true}'
      flotilla get identity ${name} -o json | sed -n 's/.*"jwt": *"\\([^"]*\\)".*/\\1/p' > /etc/flotilla/${name}/jwt
      chown flotilla /etc/flotilla/${name}/jwt
      runuser -u flotilla -- flotilla identity enroll /etc/flotilla/${name}/jwt --out /etc/flotilla/${name}/identity.json`)
  }

  async function enrollRouter(name: string, settings: object): Promise<void> {
    await host.run(makeFolders(name))
    await host.write(`/etc/flotilla/${name}/router.yml`, stringify(settings))
    await host.run(`cd /etc/flotilla/${name} && chown flotilla router.yml
      flotilla create edge-router name=${name} roleAttributes=public isTunnelerEnabled=true
      flotilla get edge-router ${name} -o json | sed -n 's/.*"enrollmentJwt": *"\\([^"]*\\)".*/\\1/p' > jwt
      chown flotilla jwt
      runuser -u flotilla -- flotilla router enroll router.yml --jwt jwt`)
  }

  /**
   * Makes the main thread of a process loop forever, through its debugger; other threads continue.
   */
  async function hang(pid: string): Promise<void> {
    const program = `
      const [{ webSocketDebuggerUrl }] = await (await fetch('http://127.0.0.1:9229/json')).json()
      const socket = new WebSocket(webSocketDebuggerUrl)
      await new Promise((opened) => (socket.onopen = opened))
      const params = { expression: 'setTimeout(() => { for (;;); })' }
      socket.send(JSON.stringify({ id: 1, method: 'Runtime.evaluate', params }))
      await new Promise((answered) => (socket.onmessage = answered))
      process.exit()`
    await host.write('/root/hang.mjs', program)
    await host.run(`kill -USR1 ${pid}
      until ss -ltn | grep -q 127.0.0.1:9229; do sleep 0.1; done
      /opt/flotilla/current/node_modules/node-linux-*/bin/node /root/hang.mjs`)
  }

  const routerSettings = {
    v: 3,
    identity: {
      cert: 'router.cert',
      server_cert: 'router.server.cert',
      key: 'router.key',
      ca: 'router.ca',
    },
    ctrl: { endpoints: names.map((name) => `tls:${name}.example.net:1380`) },
    csr: { sans: { dns: ['router.example.net', 'web.example.net'] } },
    edge: {},
    link: { dialers: [{ binding: 'transport' }] },
  }
  const edgeListener = {
    binding: 'edge',
    bind: 'tls:127.0.0.1:3022',
    options: { advertise: 'router.example.net:3022' },
  }

  async function untilDialed(): Promise<void> {
    await until(
      'the service answers through tunnel and router',
      async () => {
        const program = `fetch('https://127.0.0.1:1682/health-checks').then(({ status }) => console.log(status))`
        const node = '/opt/flotilla/current/node_modules/node-linux-*/bin/node'
        const said = await host.try(`NODE_TLS_REJECT_UNAUTHORIZED=0 ${node} -e "${program}"`)
        return said === '200\n'
      },
      SLOW_MS,
      EVERY_MS,
    )
  }

  test('install without a network connection, and their units run three controllers, a router and a tunnel', async () => {
    await install(packages)
    expect(await host.run('flotilla version')).toMatch(
      new RegExp(`^flotilla ${version} \\(node v24`),
    )
    await host.run(`${makeFolders('ctrl1')}
      runuser -u flotilla -- flotilla cluster init ${planned('ctrl1')} --cluster-name prod.example.net
      systemctl enable --now flotilla-controller@ctrl1`)
    for (const name of ['ctrl2', 'ctrl3']) {
      await host.run(`umask 077
        flotilla cluster invite --config ${config('ctrl1')} > /root/ticket
        ${makeFolders(name)}
        runuser -u flotilla -- flotilla cluster join ${planned(name)} --ticket-file - --no-run < /root/ticket
        systemctl enable --now flotilla-controller@${name}`)
    }
    await untilVoters(3)
    await host.run(`umask 077
      sed -n 's/.*"password": *"\\([^"]*\\)".*/\\1/p' /etc/flotilla/ctrl1/admin.json > /root/password
      flotilla login ${names.map((name) => `https://${name}.example.net:1280`).join(' ')} --user admin \\
        --password-file /root/password --ca /etc/flotilla/ctrl1/ca.pem
      flotilla create config name=health-host configType=host.v1 'data={"protocol":"tcp","address":"ctrl1.example.net","port":1280}'
      flotilla create service name=health encryptionRequired=true configs=health-host
      flotilla create service-policy name=bind type=Bind semantic=AnyOf identityRoles=#server serviceRoles=#all
      flotilla create service-policy name=dial type=Dial semantic=AnyOf identityRoles=#laptop serviceRoles=#all
      flotilla create edge-router-policy name=all semantic=AnyOf identityRoles=#all edgeRouterRoles=#public
      flotilla create service-edge-router-policy name=all semantic=AnyOf serviceRoles=#all edgeRouterRoles=#public`)
    await enrollRouter('edge1', { ...routerSettings, listeners: [edgeListener] })
    for (const name of ['server', 'laptop']) await enroll(name)
    await host.write(
      '/etc/flotilla/laptop/tunnel.env',
      'FLOTILLA_TUNNEL_OPTIONS=--proxy health:1682\n',
    )
    await host.run(
      'systemctl enable --now flotilla-router@edge1 flotilla-tunnel@server flotilla-tunnel@laptop',
    )
    await untilDialed()
    expect(await show('flotilla-controller@ctrl1', 'StatusText')).toBe('serves as ctrl1')
    expect(await show('flotilla-tunnel@laptop', 'StatusText')).toBe('runs in mode proxy')
  })

  test('start a controller even if the other controllers of its cluster do not run', async () => {
    await host.run('systemctl stop flotilla-controller@ctrl1 flotilla-controller@ctrl2')
    await restart('flotilla-controller@ctrl3')
    await host.run('systemctl start flotilla-controller@ctrl1 flotilla-controller@ctrl2')
    await untilVoters(3)
  })

  test('let systemd restart a process whose main thread hangs', async () => {
    for (const unit of [
      'flotilla-controller@ctrl2',
      'flotilla-router@edge1',
      'flotilla-tunnel@laptop',
    ]) {
      await host.run(`mkdir -p /run/systemd/system/${unit}.service.d
        printf '[Service]\\nWatchdogSec=6\\n' > /run/systemd/system/${unit}.service.d/short.conf
        systemctl daemon-reload`)
      await restart(unit)
      const pid = await show(unit, 'MainPID')
      await hang(pid)
      await until(
        `${unit} is restarted`,
        async () => {
          const isActive = (await show(unit, 'ActiveState')) === 'active'
          return isActive && ![pid, '0'].includes(await show(unit, 'MainPID'))
        },
        SLOW_MS,
        EVERY_MS,
      )
      expect(await host.run(`journalctl --unit ${unit}`)).toContain('Watchdog timeout')
      await host.run(`rm /run/systemd/system/${unit}.service.d/short.conf
        systemctl daemon-reload`)
      await restart(unit)
    }
    await untilVoters(3)
    await untilDialed()
  })

  test('do not let the watchdog restart a controller that works', async () => {
    const restarts = await show('flotilla-controller@ctrl1', 'NRestarts')
    const interval = await show('flotilla-controller@ctrl1', 'WatchdogUSec')
    expect({ restarts, interval }).toEqual({ restarts: '0', interval: '2min' })
  })

  /** The YAML that the pages show for controllers, by the setting that it changes. */
  const controllerPages: Readonly<Record<string, string>> = {
    'operate/backup-and-restore.md': 'backup:',
    'operate/logs.md': 'logFile:',
    'integrate/events.md': 'events:',
    'operate/monitoring.md': 'web:',
    'administer/console.md': 'web:',
  }
  const routerPages: Readonly<Record<string, readonly string[]>> = {
    'operate/run-a-router.md': ['listeners:', 'proxy:', 'dialers:'],
    'operate/router-tunnel.md': ['listeners:'],
  }

  function shown(page: string, key: string): Record<string, unknown> {
    const blocks = [...pageText(page).matchAll(/^( *)```yaml\n(.*?)^ *```$/gms)].map(
      ([, indent = '', text = '']) => text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    )
    const found = blocks.filter((text) => text.startsWith(key))
    expect(found, page).toHaveLength(1)
    return parse(found[0] ?? '') as Record<string, unknown>
  }

  /** Installs a drop-in of the package, as the pages say. */
  async function addDropIn(name: string, unit: string): Promise<void> {
    await host.run(`install -D -m 0644 /opt/flotilla/current/deploy/systemd/drop-ins/${name} \\
        /etc/systemd/system/${unit}.service.d/${name}
      systemctl daemon-reload`)
  }

  test('start a controller with every option that the docs pages describe, without an alarm about backups or events', async () => {
    await host.run(`ip address add 10.0.0.5/32 dev lo; ip address add 10.9.0.5/32 dev lo
      mkdir -p /opt/zac && echo '<html>' > /opt/zac/index.html
      printf '#!/bin/sh\\n' > /usr/local/bin/copy-backup && chmod 755 /usr/local/bin/copy-backup
      openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out /root/backup.key
      openssl pkey -in /root/backup.key -pubout -out /etc/flotilla/backup.pem
      chmod 644 /etc/flotilla/backup.pem`)
    const kept = await host.run(`cat ${config('ctrl1')}`)
    for (const [page, key] of Object.entries(controllerPages)) {
      const settings = { ...(parse(kept) as object), ...shown(page, key) }
      // Only one controller on this host can listen on 0.0.0.0.
      const text = stringify(settings).replace('0.0.0.0:1280', `${address('ctrl1')}:1280`)
      await host.write(config('ctrl1'), text)
      await restart('flotilla-controller@ctrl1')
      if (page === 'operate/backup-and-restore.md') {
        await until(
          'a backup is taken',
          async () => (await host.try('ls /var/backups/flotilla')).includes('.backup\n'),
          SLOW_MS,
          EVERY_MS,
        )
      }
      if (page === 'operate/logs.md')
        expect(await host.run('cat /var/log/flotilla/ctrl1/*.log')).toContain('controller started')
      if (page === 'integrate/events.md') {
        const file = String(parse(text)['events']['file']['path'])
        await until(
          'events are written',
          async () => (await host.try(`wc -c < ${file}`)).trim() > '0',
          SLOW_MS,
          EVERY_MS,
        )
      }
      const raised = (await alarms('ctrl1')).filter((code) => /BACKUP|EVENTS/.test(code))
      expect(raised, page).toEqual([])
    }
    await host.write(config('ctrl1'), kept)
    await restart('flotilla-controller@ctrl1')
    await untilVoters(3)
  })

  test('let root write no files into folders of the user flotilla, and print the command to use instead', async () => {
    await host.run(makeFolders('restored'))
    const backup = (await host.run('ls /var/backups/flotilla/*.backup | head -n 1')).trim()
    const restore = `flotilla cluster snapshot restore ${backup} ${config('restored')} --id restored`
    await expect(host.run(`flotilla controller run ${config('ctrl1')}`)).rejects.toThrow(
      'could not open the files that root creates; type: systemctl start flotilla-controller@ctrl1\n',
    )
    for (const command of [
      `flotilla cluster init ${config('restored')} --id restored`,
      `${restore} --data /var/lib/flotilla/restored/data --key /root/backup.key`,
    ]) {
      await expect(host.run(command)).rejects.toThrow(
        `could not open the files that root creates; type: runuser -u flotilla -- ${command}\n`,
      )
    }
    const folders = names.map((name) => `/etc/flotilla/${name} /var/lib/flotilla/${name}`)
    expect(await host.run(`find ${folders.join(' ')} -uid 0`)).toBe('')
    expect(await host.run('ls /etc/flotilla/restored /var/lib/flotilla/restored')).toBe(
      '/etc/flotilla/restored:\n\n/var/lib/flotilla/restored:\n',
    )
  })

  test('let a controller listen on port 443 with the drop-in for low ports', async () => {
    const unit = 'flotilla-controller@ctrl3'
    const kept = await host.run(`cat ${config('ctrl3')}`)
    const { web, ...others } = parse(kept) as { web: readonly object[] }
    const low = { bind: '127.0.1.3:443', advertise: 'ctrl3.example.net:443' }
    await host.write(config('ctrl3'), stringify({ ...others, web: [...web, low] }))
    await addDropIn('low-ports.conf', unit)
    await restart(unit)
    expect(await host.run('ss -ltn')).toContain(' 127.0.1.3:443 ')
    await untilVoters(3)
  })

  test('start a router with every option that the docs pages describe', async () => {
    await addDropIn('tproxy.conf', 'flotilla-router@edge1')
    for (const [page, keys] of Object.entries(routerPages)) {
      for (const key of keys) {
        await host.write(
          '/etc/flotilla/edge1/router.yml',
          stringify({ ...routerSettings, listeners: [edgeListener], ...shown(page, key) }),
        )
        await restart('flotilla-router@edge1')
      }
    }
    expect(await host.run('ss -lun')).toContain(' 127.0.0.1:53 ')
    await host.run(`rm -r /etc/systemd/system/flotilla-router@edge1.service.d
      systemctl daemon-reload`)
    await host.write(
      '/etc/flotilla/edge1/router.yml',
      stringify({ ...routerSettings, listeners: [edgeListener] }),
    )
    await restart('flotilla-router@edge1')
    await untilDialed()
  })

  test('let a tunnel in mode tproxy listen for DNS queries with the drop-in for tproxy', async () => {
    await enroll('gateway')
    await host.write(
      '/etc/flotilla/gateway/tunnel.env',
      'FLOTILLA_TUNNEL_OPTIONS=--mode tproxy --resolver udp://127.0.0.3:53\n',
    )
    await addDropIn('tproxy.conf', 'flotilla-tunnel@gateway')
    await restart('flotilla-tunnel@gateway')
    await until(
      'its name server listens',
      async () => (await host.run('ss -lun')).includes(' 127.0.0.3:53 '),
      SLOW_MS,
      EVERY_MS,
    )
    await host.run('systemctl stop flotilla-tunnel@gateway')
  })

  test('let a tunnel write its renewed certificate and its last known addresses into its folder', async () => {
    const file = '/etc/flotilla/laptop/identity.json'
    const before = await host.run(`cat ${file}`)
    await host.write(
      '/etc/flotilla/laptop/tunnel.env',
      'FLOTILLA_TUNNEL_OPTIONS=--proxy health:1682 --extend\n',
    )
    await restart('flotilla-tunnel@laptop')
    await until(
      'the certificate is renewed',
      async () => (await log('flotilla-tunnel@laptop')).includes('"certificate renewed"'),
      SLOW_MS,
      EVERY_MS,
    )
    const after = await host.run(`cat ${file}`)
    const certOf = (text: string) => (JSON.parse(text) as { id: { cert: string } }).id.cert
    expect(certOf(after)).not.toBe(certOf(before))
    expect(JSON.parse(await host.run(`cat ${file}.addresses`))).toMatchObject({
      'ctrl1.example.net': [address('ctrl1')],
    })
    await host.write(
      '/etc/flotilla/laptop/tunnel.env',
      'FLOTILLA_TUNNEL_OPTIONS=--proxy health:1682\n',
    )
    await restart('flotilla-tunnel@laptop')
    await untilDialed()
  })

  test('can be upgraded without a refused write, and keep the previous program while it still runs', async () => {
    await host.write(
      '/root/write.sh',
      `#!/bin/sh
n=0
while [ ! -e /run/written ]; do
  n=$((n + 1))
  flotilla create identity name=written-$n type=Device isAdmin=false > /run/output 2>&1 || { cat /run/output >> /run/refused; }
  echo $n > /run/count
done
`,
    )
    await host.run('systemd-run --unit=writer --setenv=HOME=/root sh /root/write.sh')
    const printed = await install(later)
    expect(printed).toContain('flotilla-controller@ctrl1.service still runs the version')
    expect(await host.run('flotilla version')).toContain(`flotilla ${next} `)
    const former = `flotilla-program-${version}`
    await expect(host.run(`dpkg --remove ${former}`)).rejects.toThrow('still runs as process')
    await host.run(`test -x /opt/flotilla/flotilla-${version}/bin/flotilla`)
    for (const name of names) {
      await restart(`flotilla-controller@${name}`)
      const wait = `flotilla cluster upgrade status --config ${config(name)} --wait 2m`
      expect(await host.run(wait)).toContain('the next controller can be stopped')
    }
    for (const unit of [
      'flotilla-router@edge1',
      'flotilla-tunnel@server',
      'flotilla-tunnel@laptop',
    ]) {
      await restart(unit)
    }
    await host.run(': > /run/written; while systemctl is-active --quiet writer; do sleep 0.2; done')
    expect(await host.try('cat /run/refused')).toBe('')
    expect(Number(await host.run('cat /run/count'))).toBeGreaterThan(5)
    const running = await host.run(
      `flotilla cluster upgrade status --json --config ${config('ctrl1')}`,
    )
    const { members: all } = JSON.parse(running) as { members: readonly { version: string }[] }
    expect(all.map((member) => member.version)).toEqual(names.map(() => `v${next}`))
    await host.run(`dpkg --purge ${former}`)
    await untilDialed()
  })

  test('do not restart a controller that was removed from the cluster', async () => {
    await host.run(
      `flotilla cluster remove ctrl3 --config ${config('ctrl1')} --confirm 'remove ctrl3 and tolerate 0 failures'`,
    )
    await until(
      'ctrl3 has ended',
      async () => (await show('flotilla-controller@ctrl3', 'ActiveState')) === 'inactive',
      SLOW_MS,
      EVERY_MS,
    )
    await host.run('systemctl start flotilla-controller@ctrl3')
    await until(
      'ctrl3 has ended again',
      async () => (await show('flotilla-controller@ctrl3', 'ActiveState')) === 'inactive',
      SLOW_MS,
      EVERY_MS,
    )
    expect(await show('flotilla-controller@ctrl3', 'Result')).toBe('success')
  })

  test('stop their units and keep the data when the packages are removed', async () => {
    await host.run(
      'dpkg --remove flotilla-controller flotilla-router flotilla-tunnel flotilla && test -d /var/lib/flotilla/ctrl1/data',
    )
    const left = await host.run(
      `systemctl list-units --plain --no-legend --state=active 'flotilla-*.service'`,
    )
    expect(left).toBe('')
    await host.run(`dpkg --purge flotilla-program-${next} && test ! -e /opt/flotilla/bin/flotilla`)
  })
})

describe.skipIf(missing !== null)(`the archive on a host ${missing ?? ''}`, () => {
  test('can be installed as the docs page describes, without a network connection, and runs a controller', async () => {
    await using host = await SystemdHost.boot('archive')
    await host.run('rm -f /usr/bin/node /usr/local/bin/node')
    await host.copyIn(packages.folder, '/root/archive')
    const blocks = shellBlocks(pageText('start/install.md')).filter((block) =>
      /^mkdir -p \/opt\/flotilla\/bin\ntar |^install -m 0644/.test(block),
    )
    expect(blocks).toHaveLength(2)
    const name = `flotilla-${version}-linux-${process.arch}.tar.xz`
    const printed: string[] = []
    for (const block of blocks) {
      const typed = block.replaceAll(/flotilla-[\d.]+-linux-x64\.tar\.xz/g, name)
      printed.push(await host.run(`cd /root/archive\n${typed}`))
    }
    expect(printed[0]).toMatch(new RegExp(`^flotilla ${version} \\(node v24`))
    await host.run(`cd /opt/flotilla/current && test -f docs/operate/README.md && test -f deploy/README.md
      install -d -o flotilla -g flotilla -m 0700 /etc/flotilla/ctrl1 /var/lib/flotilla/ctrl1
      runuser -u flotilla -- /opt/flotilla/bin/flotilla cluster init /etc/flotilla/ctrl1/config.yml --id ctrl1 \\
        --data /var/lib/flotilla/ctrl1/data --advertise localhost
      systemctl enable --now flotilla-controller@ctrl1`)
    expect(await host.run('systemctl is-active flotilla-controller@ctrl1')).toBe('active\n')
  })
})
