import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ScriptRunner } from './script-runner.ts'

// Each script is a scene: commands, `----`, what came of them. FLOTILLA_RECORD=1 writes down what comes of them now;
// a recording changes only with a reason.

const folder = join(import.meta.dirname, 'scripts')
const isRecording = process.env['FLOTILLA_RECORD'] === '1'

function play(script: string): string {
  const runner = new ScriptRunner()
  const scenes = script.trimEnd().split(/\n\n+/)
  const played = scenes.map((scene) => {
    const [part = ''] = scene.split('\n----')
    const lines = part.split('\n')
    const commands = lines.map((line) => line.trim()).filter((line) => !/^(#|$)/.test(line))
    if (commands.length === 0) return scene
    return `${part}\n----\n${runner.run(commands)}`
  })
  return `${played.join('\n\n')}\n`
}

for (const name of readdirSync(folder).filter((file) => file.endsWith('.txt'))) {
  test(`script: ${name.replace('.txt', '').replaceAll('_', ' ')}`, () => {
    const path = join(folder, name)
    const script = readFileSync(path, 'utf8')
    const played = play(script)
    if (isRecording) writeFileSync(path, played)
    else expect(played).toBe(script)
  })
}
